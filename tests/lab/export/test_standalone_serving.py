"""A served export: nothing is compiled after the warm-up, and bad requests get a sentence."""

import contextlib
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from examples import serve
from zoo.lab.export import standalone

MODELS = pathlib.Path(__file__).parents[3] / "models"
ROWS, LENGTH = 5, 11


@contextlib.contextmanager
def compilations():
    """A list of the programs that are compiled within its context, or fetched from a cache."""
    events = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield events
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def random_sentences(model, random):
    return [
        [model.words[n] for n in random.integers(len(model.words), size=size)]
        for size in random.integers(LENGTH + 1, size=random.integers(ROWS + 1))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["micro", "shakespeare"])  # with a boundary and without
def test_nothing_is_compiled_after_the_warm_up(name):
    model, random = standalone.Model(MODELS / name), np.random.default_rng(0)
    with compilations() as programs:
        model.warm_up(ROWS, LENGTH)
    assert programs  # 1, 2, 4, 8 rows of 1, 2, 4, 8, 16 positions
    assert model._programs["score"]._cache_size() == 20
    requests = [random_sentences(model, random) for _ in range(100)]
    requests += [[], [[]], [model.words[:LENGTH]] * ROWS]
    with compilations() as further_programs:
        scores = [model.log_prob(sentences) for sentences in requests]
    assert not further_programs
    for sentences, padded in zip(requests[::20], scores[::20], strict=True):
        unpadded = [_unpadded(model, words) for words in sentences]
        np.testing.assert_allclose(padded, unpadded, rtol=1e-6)


def _unpadded(model, words):
    """log p of a sentence by itself, at as many positions as it has."""
    ids = np.array([model._row(words)], np.int32)
    if ids.shape[1] < 2:
        return 0.0
    reset = np.zeros((1, ids.shape[1] - 1), bool)
    log_prob, _, _ = model.score(ids[:, :-1], ids[:, 1:], reset, model.initial_carry(1))
    return np.asarray(log_prob, np.float64).sum()


class Lengths:
    """A model whose log p of a sentence is minus its length; it lacks the words "zebra" and "b"."""

    def split(self, text):
        return text.split()

    def outside(self, sentence):
        return [word for word in sentence if word == "b"]

    def log_prob(self, sentences):
        if ["zebra"] in sentences:
            raise ValueError("'zebra' is not among the words of the model: it has no <unk> & co.")
        return np.array([-float(len(words)) for words in sentences])


@pytest.fixture
def server():
    """A server of `Lengths` that takes 2 sentences of 3 words, not yet `running`."""
    server = serve.Server(("127.0.0.1", 0), serve.Handler)
    server.folder = "an export"
    server.scores = lambda body: serve.scores(Lengths(), 2, 3, body)
    yield server
    server.server_close()


@contextlib.contextmanager
def served(folder: str, rows: int, length: int) -> Iterator[int]:
    """Serves an export within its context; yields the port."""
    limits = ["--rows", str(rows), "--words", str(length)]
    server_file = str(MODELS.parent / "examples/serve.py")
    command = [sys.executable, server_file, folder, "--port", "0", *limits]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline().rpartition(":")[2])
        finally:
            server.terminate()


def ask(connection: http.client.HTTPConnection, body: bytes) -> tuple[int, bytes]:
    """Sends a request; returns (status, content of the answer)."""
    connection.request("POST", "/", body)
    answer = connection.getresponse()
    return answer.status, answer.read()


@contextlib.contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def connection(server):
    """A connection to the running server."""
    client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    with running(server), contextlib.closing(client):
        yield client


def test_sentences_are_answered_on_one_connection(connection, capsys):
    for sentences, expected, unknown in (
        (["a b", ""], [-2, 0], [1, 0]),
        (["b b c"], [-3], [2]),
    ):
        body = json.dumps({"sentences": sentences}).encode()
        status, content = ask(connection, body)
        assert status == 200
        assert json.loads(content) == {"log_probs": expected, "unknown": unknown}
    assert not capsys.readouterr().err  # no line of a log


def test_a_health_check_is_answered(connection):
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (200, {"serving": "an export"})


WRITE = 'Send JSON such as {"sentences": ["one sentence", "another one"]}.'
LIMITS = "Send 1 to 2 sentences of at most 3 words."
BAD = {
    b"": WRITE,
    b"{": WRITE,
    b"\xff": WRITE,
    b"3": WRITE,
    b"[]": WRITE,
    b"{}": WRITE,
    b'{"sentences": "a b"}': WRITE,
    b'{"sentences": [["a"]]}': WRITE,
    b"[" * 100_000: WRITE,
    b'{"sentences": []}': LIMITS,
    b'{"sentences": ["a", "b", "c"]}': LIMITS,
    b'{"sentences": ["a b c d"]}': LIMITS,
    b'{"sentences": ["zebra"]}': (
        "'zebra' is not among the words of the model: it has no <unk> & co."
    ),
}


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_a_bad_request_is_answered_by_a_sentence(body, connection, capsys):
    status, content = ask(connection, body)
    assert (status, content.decode()) == (400, BAD[body] + "\n")
    assert "Traceback" not in capsys.readouterr().err


LENGTH_LIMIT = b"Send a Content-Length of at most 1048576 bytes.\n"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (("Transfer-Encoding", "chunked"), 400),
        (("Content-Length", "-1"), 400),
        (("Content-Length", "2 bytes"), 400),
        (("Content-Length", "1048577"), 413),
        (("Content-Length", "9" * 5000), 413),
    ],
)
def test_a_request_is_not_read_without_a_length(header, status, connection):
    connection.putrequest("POST", "/")
    connection.putheader(*header)
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (status, LENGTH_LIMIT)
    assert answer.getheader("Connection") == "close"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_reads_its_answer_after_it_has_sent_a_large_body(chunked, connection):
    megabyte = b" " * 1_000_000
    body = (megabyte for _ in range(50)) if chunked else 50 * megabyte
    status, content = ask(connection, body)
    assert (status, content) == (400 if chunked else 413, LENGTH_LIMIT)


def test_a_bad_request_leaves_its_connection_open(connection):
    assert ask(connection, b"{")[0] == 400
    socket_before = connection.sock
    assert ask(connection, b'{"sentences": ["a"]}')[0] == 200
    assert connection.sock is socket_before is not None


def connect(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


def answered(client):
    """What a client receives until its connection is closed."""
    return b"".join(iter(lambda: client.recv(4096), b""))


POST = b'POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 22\r\n\r\n{"sentences": ["a b"]}'


def test_clients_that_connect_at_once_are_all_answered(server, count=128):
    """None is accepted before all have connected."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(count)]
        for client in clients:
            client.sendall(POST)
        stack.enter_context(running(server))
        answers = [answered(client) for client in clients]
    assert {answer.split(b"\r\n\r\n")[1] for answer in answers} == {
        b'{"log_probs": [-2.0], "unknown": [1]}'
    }


def test_slow_clients_neither_block_others_nor_stay_for_ever(server, monkeypatch, capsys):
    """200 of them send a byte of a header or of a body again and again, and never an end."""
    now = [0.0]  # the server's clock
    monkeypatch.setattr(serve, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    beginnings = [b"P", b"POST / HTTP/1.1\r\nA: b", POST[:-1][:60]]
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(server))
        slow = [stack.enter_context(connect(server)) for _ in range(200)]
        for number, client in enumerate(slow):
            client.sendall(beginnings[number % 3])
        quick = stack.enter_context(connect(server))
        quick.sendall(POST)
        assert b'"log_probs": [-2.0]' in answered(quick)
        open_still, until = {*slow}, time.monotonic() + 300
        while open_still and time.monotonic() < until:
            now[0] += serve.SLOWEST
            time.sleep(0.1)
            for client in [*open_still]:
                try:
                    client.sendall(b" ")
                except OSError:  # closed by the server
                    open_still.remove(client)
        assert not open_still
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not an exported model"),
        ([str(MODELS / "micro"), "--rows", "0"], "--rows and --words are at least 1"),
        ([str(MODELS / "micro"), "--port", "99999"], "cannot serve at 127.0.0.1:99999"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_compiled(
    arguments, message, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["serve.py", *arguments])
    monkeypatch.setattr(serve.runpy, "run_path", None)
    with pytest.raises(SystemExit) as end:
        serve.main()
    assert end.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.slow
def test_the_server_scores_as_the_model():
    model = standalone.Model(MODELS / "micro")
    texts = [" ".join(model.words[n] for n in (7, 20, 31)), " ".join(model.words[3:10])]
    with (
        served(str(MODELS / "micro"), 2, 7) as port,
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection,
    ):
        status, content = ask(connection, json.dumps({"sentences": texts}).encode())
    expected = model.log_prob([model.split(text) for text in texts])
    assert status == 200
    np.testing.assert_allclose(json.loads(content)["log_probs"], expected, rtol=1e-6)
