"""Serves log-probabilities of sentences from an exported language model, over HTTP.

    python examples/serve.py models/micro
    curl localhost:8000 --data '{"sentences": ["le souleur dalmaibait la taidrine ."]}'

The answer is {"log_probs": [...], "unknown": [...]}: nats, and how many words of each sentence were
read as the unknown word; to a bad request it is a status such as 400 with a sentence. The server
needs the packages of the export's load.py, and not Zoo. Programs of all shapes within the limits
are compiled before the first request; docs/export.md has the latency.
"""

import argparse
import contextlib
import functools
import io
import json
import pathlib
import runpy
import signal
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGEST = 1 << 20  # bytes of a request
SLOWEST = 30.0  # seconds until a request has arrived, then its connection is closed
TEXT = "text/plain; charset=utf-8"


def scores(model, rows, words, body):
    """Scores the sentences of a request; raises ValueError with a sentence for the client."""
    try:
        texts = json.loads(body)["sentences"]
    except (ValueError, TypeError, LookupError, RecursionError):
        texts = None
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ValueError('Send JSON such as {"sentences": ["one sentence", "another one"]}.')
    sentences = [model.split(text) for text in texts]
    if not 1 <= len(sentences) <= rows or max(map(len, sentences)) > words:
        raise ValueError(f"Send 1 to {rows} sentences of at most {words} words.")
    unknown = [len(model.outside(sentence)) for sentence in sentences]
    return {"log_probs": model.log_prob(sentences).tolist(), "unknown": unknown}


class Server(ThreadingHTTPServer):
    """A thread a connection; `folder` and `scores` are set when its model is ready."""

    request_queue_size = 1024  # clients that connect at once; Python's 5 turns others away

    def handle_error(self, request, client_address):
        """Tells errors, but not of a client that has gone."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Timed(io.RawIOBase):
    """The bytes of a connection until a deadline, however slowly they come."""

    deadline = 0.0

    def __init__(self, connection):
        """Reads from a socket."""
        self.connection = connection

    def readable(self):
        """Can be read."""
        return True

    def readinto(self, buffer):
        """Raises TimeoutError at the deadline."""
        self.connection.settimeout(max(self.deadline - time.monotonic(), 1e-3))
        return self.connection.recv_into(buffer)


class Handler(BaseHTTPRequestHandler):
    """Answers POST requests, any number on a connection."""

    protocol_version, wbufsize = "HTTP/1.1", -1  # an answer is sent whole

    def setup(self):
        """Reads the connection through `Timed`."""
        super().setup()
        self.rfile = io.BufferedReader(Timed(self.connection))

    def handle_one_request(self):
        """Gives each request its time."""
        self.rfile.raw.deadline = time.monotonic() + SLOWEST
        super().handle_one_request()

    def do_GET(self):
        """Tells a health check that the server runs."""
        self.answer(200, json.dumps({"serving": self.server.folder}))

    def log_message(self, *arguments):
        """Writes no line for each request."""

    def do_POST(self):
        """Reads a request and writes its answer."""
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or len(size) > 9 or int(size) > LARGEST:
            reason = f"Send a Content-Length of at most {LARGEST} bytes."
            return self.send_error(413 if size.isdecimal() else 400, explain=reason)
        try:
            answer = self.server.scores(self.rfile.read(int(size)))
        except ValueError as error:
            return self.answer(400, f"{error}\n", TEXT)
        self.answer(200, json.dumps(answer))

    def send_error(self, code, message=None, explain=None):
        """Answers a request that is not read to its end; http.server does so, too."""
        self.close_connection = True
        self.answer(code, f"{explain or message or self.responses[code][0]}\n", TEXT)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        while self.rfile.read1():  # many clients read an answer after they have sent everything
            pass

    def answer(self, status, text, kind="application/json"):
        """Writes an answer."""
        content = text.encode(errors="backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def main():
    """Loads an export, compiles its programs, and serves it until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="an exported language model, whose load.py is executed")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: all; default: this machine")
    parser.add_argument("--port", type=int, default=8000, help="0: a free one; default: 8000")
    parser.add_argument("--rows", type=int, default=16, help="sentences in a request; default: 16")
    parser.add_argument("--words", type=int, default=64, help="words in a sentence; default: 64")
    arguments = parser.parse_args()
    load = pathlib.Path(arguments.folder, "load.py")
    if not load.is_file():
        parser.error(f"{arguments.folder} is not an exported model: zoo export makes one of a run")
    if min(arguments.rows, arguments.words) < 1:
        parser.error("--rows and --words are at least 1")
    try:  # before the programs are compiled; waiting clients are served afterwards
        server = Server((arguments.host, arguments.port), Handler)
    except (OSError, OverflowError) as error:
        parser.error(f"cannot serve at {arguments.host}:{arguments.port} ({error})")
    model = runpy.run_path(str(load))["Model"](arguments.folder)
    model.warm_up(arguments.rows, arguments.words)
    server.folder = arguments.folder
    server.scores = functools.partial(scores, model, arguments.rows, arguments.words)
    print(f"serving {arguments.folder} at http://{arguments.host}:{server.server_port}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
