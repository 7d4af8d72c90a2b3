"""Free corpora, fetched from a copy of their addresses in a folder."""

import hashlib
import http.server
import io
import json
import threading
import tracemalloc
import zipfile

import pytest

from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.commands.command_table import main
from zoo.sources import fetch, files, table_rows
from zoo.sources.conllu import Conllu

TREEBANK = "api.github.com/repos/UniversalDependencies/UD_Old_French-ALTM/contents?ref=r2.9"
SENTENCE = "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def mirror(tmp_path):
    """put(address without scheme, content) in a folder, and the address of the folder."""
    folder = tmp_path / "mirror"

    def put(address, content):
        path = folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    put.url = folder.as_uri()
    return put


@pytest.fixture
def texts(monkeypatch):
    """Corpora of our own: one with a known hash, one with a zip archive and known tokens."""
    sha256 = hashlib.sha256(b"to be\n").hexdigest()
    plain = fetch.File("plays/input.txt", ("https://a.org/plays/input.txt",), sha256)
    inner = fetch.File(
        "w/wiki.test.tokens", ("https://b.org/w.zip",), None, "w/wiki.test.tokens", 5
    )
    corpora = {
        "plays": fetch.Corpus("plays", (plain,)),
        "w": fetch.Corpus("articles", (inner,), ("hub/w", "w-v1")),
    }
    monkeypatch.setattr(fetch, "CORPORA", corpora)
    return corpora


def zipped(name, content):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, content)
    return archive.getvalue()


def quietly(name, folder, **options):
    return fetch.fetch(name, folder, log=lambda line: None, **options)


def test_a_file_of_known_content_is_fetched_once(texts, mirror, tmp_path):
    mirror("a.org/plays/input.txt", b"to be\n")
    (file,) = quietly("plays", tmp_path / "data", mirror=mirror.url)
    assert file.status == "known" and file.path.read_bytes() == b"to be\n"
    assert not list(file.path.parent.glob("*.partial"))
    (second,) = quietly("plays", tmp_path / "data", mirror="file:///nowhere")
    assert second == file
    file.path.write_text("not to be\n")
    with pytest.raises(
        UserError, match=r"input\.txt is another file .* move it away to fetch it again"
    ):
        quietly("plays", tmp_path / "data", mirror=mirror.url)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_network_is_asked(
    texts, tmp_path, monkeypatch
):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("asked"))
    with pytest.raises(UserError, match=rf"\({tmp_path} may not be written to\).* by --into"):
        quietly("plays", tmp_path / "data")


def test_another_content_is_refused_and_not_kept(texts, mirror, tmp_path):
    mirror("a.org/plays/input.txt", b"to bee\n")
    with pytest.raises(UserError, match=r"https://a\.org/.* another file .* get a copy"):
        quietly("plays", tmp_path / "data", mirror=mirror.url)
    assert not (tmp_path / "data").exists()


def test_a_file_of_unknown_content_is_believed_once(texts, mirror, tmp_path):
    mirror("b.org/w.zip", zipped("w/wiki.test.tokens", "\none two\nthree\n"[1:]))
    folder = tmp_path / "data"
    (file,) = quietly("w", folder, mirror=mirror.url)
    assert file.status == "first" and file.path.read_text() == "one two\nthree\n"
    record = json.loads((folder / fetch.RECORD).read_text())
    assert record == {
        "w/wiki.test.tokens": {"sha256": file.sha256, "urls": ["https://b.org/w.zip"]}
    }
    assert quietly("w", folder)[0].status == "recorded"
    file.path.unlink()
    assert quietly("w", folder, mirror=mirror.url)[0].status == "recorded"
    # Other words of the same number, from then on, are another file.
    file.path.unlink()
    mirror("b.org/w.zip", zipped("w/wiki.test.tokens", "one two\nTHREE\n"))
    with pytest.raises(UserError, match=r"another file .*/fetched\.json if the change is intended"):
        quietly("w", folder, mirror=mirror.url)
    (folder / fetch.RECORD).write_text("[]")
    with pytest.raises(UserError, match="is not the JSON that is expected"):
        quietly("w", folder, mirror=mirror.url)


def test_the_number_of_words_is_checked(texts, mirror, tmp_path):
    mirror("b.org/w.zip", zipped("w/wiki.test.tokens", "one\nthree\n"))
    with pytest.raises(UserError, match="has 4 words and line breaks, not 5"):
        quietly("w", tmp_path / "data", mirror=mirror.url)
    mirror("b.org/w.zip", b"a page that says no")
    with pytest.raises(UserError, match="not an archive with w/wiki"):
        quietly("w", tmp_path / "data", mirror=mirror.url)


@pytest.mark.parametrize("place", ["there", "plain", "archive", "hub"])
def test_a_large_file_is_in_memory_in_part(place, texts, mirror, tmp_path, monkeypatch):
    line = b"seven words of a line, and more\n"
    content = line * 2**16  # 2 MiB
    checks = {"sha256": hashlib.sha256(content).hexdigest(), "tokens": 8 * 2**16}
    plain, inner = (
        corpus._replace(files=(corpus.files[0]._replace(**checks),)) for corpus in texts.values()
    )
    corpora = {"there": plain, "plain": plain, "archive": inner, "hub": inner}
    monkeypatch.setattr(fetch, "CORPORA", corpora)
    monkeypatch.setattr(fetch, "_PIECE", 2**16)
    lines = ({"text": line.decode()} for _ in range(2**16))
    monkeypatch.setattr(table_rows, "hub", lambda path: lambda columns: lines)
    mirror("a.org/plays/input.txt", content)
    mirror("b.org/w.zip", zipped("w/wiki.test.tokens", content))
    options = {} if place == "hub" else {"mirror": mirror.url}
    if place == "there":
        quietly(place, tmp_path / "data", **options)
    tracemalloc.start()
    try:
        (file,) = quietly(place, tmp_path / "data", **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.status == "known"
    assert file.path.read_bytes() == content
    assert peak < len(content) / 2


def test_a_word_in_two_pieces_is_one(texts, mirror, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "_PIECE", 1)
    mirror("b.org/w.zip", zipped("w/wiki.test.tokens", "one  two\n three\n"))
    assert quietly("w", tmp_path / "data", mirror=mirror.url)[0].status == "first"


def test_a_damaged_archive_is_refused_and_not_kept(texts, mirror, tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("w/wiki.test.tokens", "one two\nthree\n")
    content = bytearray(archive.getvalue())
    first = 30 + len("w/wiki.test.tokens")  # after the header of the member
    content[first] |= 0b110  # a block of a kind that does not exist
    mirror("b.org/w.zip", bytes(content))
    with pytest.raises(
        UserError, match=r"w\.zip is not an archive with w/wiki\.test\.tokens \(Err"
    ):
        quietly("w", tmp_path / "data", mirror=mirror.url)
    assert not (tmp_path / "data").exists()


def test_half_an_answer_is_refused_and_not_kept(texts, tmp_path):
    class Half(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "12")
            self.end_headers()
            self.wfile.write(b"to be\n")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Half) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        mirror = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(UserError, match=r"cannot be fetched .*\(6 bytes are missing\)"):
            quietly("plays", tmp_path / "data", mirror=mirror)
        thread.join()
    assert not (tmp_path / "data").exists()


def test_the_hub_is_asked_first(texts, mirror, tmp_path, monkeypatch):
    requests = []

    def hub(path):
        rows = [{"text": text} for text in ("one two\n", "", "three\n")]
        return lambda columns: requests.append((path, columns)) or rows

    monkeypatch.setattr(table_rows, "hub", hub)
    monkeypatch.setitem(
        fetch.CORPORA,
        "w",
        texts["w"]._replace(files=(texts["w"].files[0]._replace(tokens=6),)),
    )
    (file,) = quietly("w", tmp_path / "data")
    assert requests == [("hub:hub/w:w-v1:test", ("text",))]
    assert file.path.read_text() == "one two\n\nthree\n"


def test_a_treebank_by_its_name(mirror, tmp_path):
    names = ("fro_altm-ud-dev.conllu", "fro_altm-ud-train-b.conllu", "fro_altm-ud-train-a.conllu")
    listing = [{"name": name, "download_url": f"https://c.org/{name}"} for name in names]
    listing += [{"name": "README.md", "download_url": "https://c.org/README.md"}]
    mirror(TREEBANK, json.dumps(listing).encode())
    for number, name in enumerate(names):
        mirror(f"c.org/{name}", SENTENCE.format(f"w{number}").encode())
    fetched = quietly("ud_old_french_altm", tmp_path, release="r2.9", mirror=mirror.url)
    assert [file.path.relative_to(tmp_path).as_posix() for file in fetched] == [
        "ud_old_french_altm/train.conllu",
        "ud_old_french_altm/dev.conllu",
    ]
    path = str(fetched[0].path)
    assert Conllu(path, path, ()).read("train").sentences == [["w2"], ["w1"]]
    assert fetch.read_record(tmp_path)["ud_old_french_altm/dev.conllu"]["release"] == "r2.9"
    mirror(TREEBANK, b"[]")
    with pytest.raises(UserError, match=r"UD_Old_French-ALTM has no CoNLL-U files in r2\.9"):
        quietly("ud_old_french_altm", tmp_path, release="r2.9", mirror=mirror.url)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tinyshakespeare", "tinyshakespeare/input.txt"),
        ("wikitext-2", "wikitext-2/wiki.train.tokens"),
        ("ud_czech_pdt", "ud_czech_pdt"),
    ],
)
def test_without_a_network_a_sentence_says_what_to_put_where(name, path, tmp_path, capsys):
    arguments = ["data", name, "--into", str(tmp_path), "--mirror", "http://127.0.0.1:9"]
    assert program.run(lambda: main(arguments)) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert "cannot be fetched" in error and f"put it at {tmp_path / path}" in error
    assert not list(tmp_path.iterdir())


def test_the_command_lists_and_refuses(capsys):
    main(["data", "--list"])
    output = capsys.readouterr().out
    assert all(name in output for name in (*fetch.CORPORA, "ud_LANGUAGE_TREEBANK"))
    for arguments in (["data"], ["data", "gutenberg"]):
        assert program.run(lambda arguments=arguments: main(arguments)) == 2
    assert "unknown corpus 'gutenberg': give one of wikitext-2, " in capsys.readouterr().err


@pytest.mark.realdata("multi30k", "tinyshakespeare", "clams_fr")
def test_known_hashes_are_those_of_the_files_of_our_figures():
    for name in ("multi30k", "tinyshakespeare", "clams_fr"):
        fetched = quietly(name, files.data_folder(), mirror="file:///nowhere")
        assert {file.status for file in fetched} == {"known"}
