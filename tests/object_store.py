"""Object stores of gs:// for the tests: an emulator of Google's, and names as hostile ones have.

The emulator is a server on loopback, which gcsfs, tensorstore and Google's client reach as they
would the real one. It takes no names with "..", which real stores do: `stand_in` does.
"""

import contextlib
import io
import os
import socket
import subprocess
import sys
import time

import fsspec
import gcsfs
from etils.epath import backend, gpath

BUCKET = "gs://bucket"
# tensorstore reads the generation of an object in a header, which the emulator leaves out.
_SERVE = """
import sys, time
from gcp_storage_emulator.handlers import objects
from gcp_storage_emulator.server import RequestHandler, create_server

def download(request, response, storage, *rest, **more):
    without_header(request, response, storage, *rest, **more)
    if response.status == 200:
        names = request.params["bucket_name"], request.params["object_id"]
        response["x-goog-generation"] = storage.get_file_obj(*names)["generation"]

without_header, objects.download = objects.download, download
RequestHandler.timeout = 20  # one request at a time: a client that stops in its own lets go
create_server("127.0.0.1", int(sys.argv[1]), in_memory=True, default_bucket="bucket").start()
time.sleep(1200)
"""


@contextlib.contextmanager
def emulator():
    """The environment of programs for which gs:// is an emulator with an empty `BUCKET`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", _SERVE, str(port)]
    server = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        until = time.monotonic() + 600
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            assert server.poll() is None and time.monotonic() < until, "the emulator has not begun"
            time.sleep(0.05)
        yield environment(port)
    finally:
        server.kill()
        server.wait()


def environment(port):
    """The environment of programs whose gs:// is at a port of this machine."""
    address = f"http://127.0.0.1:{port}"
    places = ("STORAGE_EMULATOR_HOST", "TENSORSTORE_GCS_HTTP_URL")
    # Otherwise Google's client looks for the machine's own rights, for seconds.
    return {**os.environ, **dict.fromkeys(places, address), "NO_GCE_CHECK": "true"}


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

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        above = self._strip_protocol(path).rstrip("/") + "/"
        names = sorted(name for name in self.objects if name.startswith(above))
        return {name: self.info(name) for name in names} if detail else names

    def ls(self, path, detail=True, **options):
        above = self._strip_protocol(path).rstrip("/") + "/"
        entries = {}
        for name in self.find(path):
            part, slash, _ = name.removeprefix(above).partition("/")
            kind = "directory" if slash else "file"
            entries[part + slash] = {
                "name": above + part,
                "size": len(self.objects[name]),
                "type": kind,
            }
        if not entries:
            raise FileNotFoundError(path)
        return [*entries.values()] if detail else [entry["name"] for entry in entries.values()]

    def info(self, path, **options):
        path = self._strip_protocol(path).rstrip("/")
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        self.ls(path)
        return {"name": path, "size": 0, "type": "directory"}

    def exists(self, path, **options):
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def makedirs(self, path, exist_ok=False):
        """Nothing: an object needs no folder."""

    def _rm(self, path):
        del self.objects[self._strip_protocol(path)]

    def _open(self, path, mode="rb", **options):
        path = self._strip_protocol(path)
        if "r" not in mode:
            return _WritableObject(self.objects, path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return io.BytesIO(self.objects[path])


class _WritableObject(io.BytesIO):
    def __init__(self, objects, path):
        super().__init__()
        self._put = lambda: objects.__setitem__(path, self.getvalue())

    def close(self):
        if not self.closed:
            self._put()
        super().close()


def stand_in(monkeypatch, objects):
    """Has gs:// be a store of objects, {bucket/name: bytes}, in memory."""
    store = Store(objects)
    monkeypatch.setattr(gpath, "_is_tf_installed", lambda: False)
    monkeypatch.setattr(backend.fsspec_backend, "fs", lambda path: store, raising=False)
    monkeypatch.setattr(gcsfs, "GCSFileSystem", lambda: store)
