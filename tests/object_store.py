"""An object store in memory, as those of gs:// are: names are kept as they are given."""

import io

import fsspec
from etils.epath import backend, gpath


class Store(fsspec.AbstractFileSystem):
    """What etils asks of gs://; folders are the beginnings of names, up to a slash."""

    cachable = False  # or one with equal objects is the same one

    def __init__(self, objects):
        """Takes {bucket/name: bytes}, which stays the store's content."""
        super().__init__()
        self.objects = objects

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("gs://")

    def ls(self, path, detail=True, **options):
        above = self._strip_protocol(path).rstrip("/") + "/"
        found = {}
        for name, content in self.objects.items():
            if name.startswith(above):
                part, slash, _ = name.removeprefix(above).partition("/")
                kind = "directory" if slash else "file"
                found[part + slash] = {"name": above + part, "size": len(content), "type": kind}
        if not found:
            raise FileNotFoundError(path)
        return [*found.values()] if detail else [one["name"] for one in found.values()]

    def info(self, path, **options):
        path = self._strip_protocol(path).rstrip("/")
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        self.ls(path)
        return {"name": path, "size": 0, "type": "directory"}

    def makedirs(self, path, exist_ok=False):
        """Nothing: an object needs no folder."""

    def _rm(self, path):
        del self.objects[self._strip_protocol(path)]

    def _open(self, path, mode="rb", **options):
        path = self._strip_protocol(path)
        return io.BytesIO(self.objects[path]) if "r" in mode else _Written(self.objects, path)


class _Written(io.BytesIO):
    def __init__(self, objects, path):
        super().__init__()
        self._put = lambda: objects.__setitem__(path, self.getvalue())

    def close(self):
        if not self.closed:
            self._put()
        super().close()


def stand_in(monkeypatch, objects):
    """Has gs:// be a store of objects, {bucket/name: bytes}."""
    store = Store(objects)
    monkeypatch.setattr(gpath, "_is_tf_installed", lambda: False)
    monkeypatch.setattr(backend.fsspec_backend, "fs", lambda path: store, raising=False)
