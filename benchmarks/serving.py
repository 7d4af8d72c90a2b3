"""Latency of a served export (examples/serve.py): median and 99th percentile.

The server and its clients share this machine. A client sends requests of random sizes on one
connection, the next as soon as it has an answer.

    python -m benchmarks.serving [models/micro] [--requests 2000]
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import timing
from zoo.lab.export.standalone import Words

ROWS, LENGTH = 16, 64
# {name: (greatest number of sentences, of words in a sentence)}
REQUESTS = {"one sentence": (1, LENGTH), f"1 to {ROWS} sentences": (ROWS, LENGTH)}
CLIENTS = (1, 4)


@contextlib.contextmanager
def served(folder: str, rows: int, length: int) -> Iterator[int]:
    """Serves an export within its context; yields the port."""
    limits = ["--rows", str(rows), "--words", str(length)]
    server_file = str(timing.ROOT / "examples/serve.py")
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


def bodies(words: list[str], rows: int, length: int, count: int, seed: int) -> list[bytes]:
    """Makes requests of 1 to `rows` sentences of 1 to `length` random words."""
    draw = random.Random(seed)
    return [
        json.dumps(
            {
                "sentences": [
                    " ".join(draw.choices(words, k=draw.randint(1, length)))
                    for _ in range(draw.randint(1, rows))
                ]
            }
        ).encode()
        for _ in range(count)
    ]


def latencies(port: int, requests: list[bytes]) -> list[float]:
    """Returns the seconds of each request of a client."""
    seconds = []
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for body in requests:
            begun = time.perf_counter()
            status, content = ask(connection, body)
            seconds.append(time.perf_counter() - begun)
            assert status == 200, content
    return seconds


def main():
    """Prints a line for each kind of request and number of clients."""
    parser = timing.parser(__doc__, requests=2000)
    parser.add_argument("folder", nargs="?", default="models/micro")
    arguments = parser.parse_args()
    lexicon = Words((pathlib.Path(arguments.folder) / "lexicon.npz").read_bytes())
    words = [word for word in lexicon.words if word not in (lexicon.boundary, lexicon.unknown)]
    begun = time.perf_counter()
    with (
        served(arguments.folder, ROWS, LENGTH) as port,
        concurrent.futures.ThreadPoolExecutor(max(CLIENTS)) as pool,
    ):
        print(f"{arguments.folder}: ready after {time.perf_counter() - begun:.1f} s")
        for (name, (rows, length)), clients in itertools.product(REQUESTS.items(), CLIENTS):
            each = arguments.requests // clients
            requests = [bodies(words, rows, length, each, seed) for seed in range(clients)]
            begun = time.perf_counter()
            seconds = [*itertools.chain(*pool.map(latencies, [port] * clients, requests))]
            passed = time.perf_counter() - begun
            median, *_, last = statistics.quantiles(seconds, n=100)[49:]
            print(
                f"{name} of 1 to {length} words, {clients} client{'s' * (clients > 1)}: median "
                f"{1e3 * median:.2f} ms, 99th percentile {1e3 * last:.2f} ms, "
                f"{len(seconds) / passed:.0f} requests a second",
                flush=True,
            )


if __name__ == "__main__":
    main()
