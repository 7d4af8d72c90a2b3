"""Serves log-probabilities of sentences from an exported language model, over HTTP.

    python examples/serve.py models/micro
    curl localhost:8000 --data '{"sentences": ["le souleur dalmaibait la taidrine ."]}'

The answer is {"log_probs": [...], "unknown": [...]}: nats, and how many words of each sentence were
read as the unknown word; to a bad request it is status 400 with a sentence. The server needs the
packages of the export's load.py, and not Zoo. Programs of all shapes within the limits are compiled
before the first request; docs/export.md has the latency.
"""

import argparse
import contextlib
import functools
import json
import pathlib
import runpy
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGEST = 1 << 20  # bytes of a request


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


class Handler(BaseHTTPRequestHandler):
    """Answers POST requests, any number on a connection."""

    protocol_version, wbufsize = "HTTP/1.1", -1  # an answer is sent whole
    error_content_type, error_message_format = "text/plain; charset=utf-8", "%(explain)s\n"

    def do_GET(self):
        """Tells a health check that the server runs."""
        self.answer({"serving": self.server.folder})

    def log_message(self, *arguments):
        """Writes no line for each request."""

    def do_POST(self):
        """Reads a request and writes its answer."""
        size = self.headers.get("Content-Length", "")
        try:
            if not size.isdecimal() or int(size) > LARGEST:
                raise ValueError(f"Send a Content-Length of at most {LARGEST} bytes.")
            answer = self.server.scores(self.rfile.read(int(size)))
        except ValueError as error:
            return self.send_error(400, explain=str(error))
        self.answer(answer)

    def answer(self, answer):
        """Writes an answer as JSON."""
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
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
        server = ThreadingHTTPServer((arguments.host, arguments.port), Handler)
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
