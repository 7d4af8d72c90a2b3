"""Connections of process 0 with all others: where processes meet, tell each other and leave.

Process 0 listens; each other connects to it and says its number. From then on

- whatever one says at an exchange reaches all, and no process passes an exchange alone;
- each says every few seconds that it lives, so that one that is killed, or a machine that
  vanishes, is known to all within SILENCE seconds;
- who leaves says why, so that the others can.

Messages are lines of JSON. JAX's own coordination ends a process by abort(), with a trace of C++,
and at its own time.
"""

import collections
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable

from zoo import strict_json
from zoo.errors import UserError

# Seconds from one sign of life to the next, and without any until a process counts as lost.
BEAT, SILENCE = 5.0, 40.0
# Seconds in which all others have to leave when one leaves.
GRACE = 10.0
# The exit code of a process that has lost another one: BSD's "temporary failure", sysexits.h.
LOST = 75
_HELLO = 5.0  # seconds for a greeting
# What messages have, by the name that tells their kind.
_SHAPES: dict[str, dict] = {
    "say": {"say": str, "exchange": int},
    "all": {"all": [str], "exchange": int},
    "left": {"left": int, "code": int, "sentence": str},
    "lost": {"lost": int},
}


def end_process(code: int, sentence: str):
    """Ends this process, whatever its main thread waits for."""
    with contextlib.suppress(OSError):
        print(f"error: {sentence}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    os._exit(code)


class Links:
    """The connections of one process, from `meet` to `leave`."""

    def __init__(
        self, index: int, count: int, sockets: dict[int, socket.socket], end: Callable = end_process
    ):
        """Takes the connections to all others, for process 0, or to process 0, and listens.

        Args:
          end: called with an exit code and a sentence once another process is lost, or has left
            and this one has not.
        """
        self.index, self.count, self._sockets, self._end = index, count, sockets, end
        self._heard = dict.fromkeys(sockets, time.monotonic())
        self._changed = threading.Condition()
        self._said: dict[int, dict[int, str]] = collections.defaultdict(dict)
        self._answers: dict[int, list[str]] = {}
        self._left: dict[int, tuple[int, str]] = {}
        self._exchanges = 0
        self._leaving = self._over = False
        self._sending = {other: threading.Lock() for other in sockets}
        for other in sockets:
            self._start(self._listen, other)
        self._start(self._beat)

    def _start(self, function, *arguments):
        threading.Thread(target=function, args=arguments, name="links", daemon=True).start()

    def exchange(self, text: str) -> list[str]:
        """What every process said, in their order; waits for them all.

        Raises:
          UserError: one of them has left instead; says why it did.
        """
        number = self._exchanges
        self._exchanges += 1
        if self.index:
            self._send(0, {"say": text, "exchange": number})
        else:
            with self._changed:
                self._said[number][0] = text
        with self._changed:
            self._changed.wait_for(lambda: self._complete(number) or self._left or self._over)
            if not self._complete(number):
                raise UserError(self._why())
            if self.index:
                return self._answers.pop(number)
            said = self._said.pop(number)
        texts = [said[other] for other in range(self.count)]
        for other in self._sockets:
            self._send(other, {"all": texts, "exchange": number})
        return texts

    def _complete(self, number) -> bool:
        return number in self._answers if self.index else len(self._said[number]) == self.count

    def _why(self) -> str:
        for other, (_, sentence) in self._left.items():
            if sentence:
                return (
                    sentence if sentence.startswith("process ") else f"process {other}: {sentence}"
                )
        return "another process of this run has ended before this one."

    def leave(self, code: int, sentence: str = "") -> bool:
        """Says that this process leaves, and waits until all others do; whether all did in time.

        Args:
          code: the exit code.
          sentence: why, "" at the end of a run.
        """
        with self._changed:
            self._leaving = True
            self._left[self.index] = code, sentence
        self._tell_left(self.index, code, sentence)
        with self._changed:
            together = self._changed.wait_for(lambda: len(self._left) == self.count, GRACE)
        return bool(together) and not self._over

    def others_left(self, seconds: float) -> str:
        """Why another process leaves, waiting so long to hear it; "" if none does.

        A process that has lost another one ends meanwhile.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._left or self._over, seconds)
            return self._why() if self._left else ""

    def close(self):
        """Closes the connections, after `leave`."""
        self._over = True
        for connection in self._sockets.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _tell_left(self, who, code, sentence, but=None):
        for other in self._sockets:
            if other != but:
                self._send(other, {"left": who, "code": code, "sentence": sentence})

    def _send(self, other, message):
        line = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(OSError), self._sending[other]:  # its listener finds out
            self._sockets[other].sendall(line)

    def _listen(self, other):
        with contextlib.suppress(OSError, ValueError), self._sockets[other].makefile("rb") as lines:
            for line in lines:
                self._heard[other] = time.monotonic()
                self._take(other, _message(line))
        self._gone(other)

    def _take(self, other, message):
        """What another process, or process 0 for it, has said."""
        if "left" in message and not self.index:  # before this one counts it, and may close
            self._tell_left(message["left"], message["code"], message["sentence"], but=other)
        with self._changed:
            if "say" in message:
                self._said[message["exchange"]][other] = message["say"]
            elif "all" in message:
                self._answers[message["exchange"]] = message["all"]
            elif "left" in message:
                who = message["left"]
                self._left.setdefault(who, (message["code"], message["sentence"]))  # the first why
                self._start(self._left_alone, who)
            elif "lost" in message:
                self._start(self._lost, message["lost"])
            self._changed.notify_all()

    def _left_alone(self, who):
        """Ends this process if it stays when another has left."""
        with self._changed:
            if self._changed.wait_for(lambda: self._leaving or self._over, GRACE):
                return
            code, why = self._left[who]
        why = f": {why}" if why else "."
        self._finish(code or LOST, f"process {who} has left this run of {self.count}{why}")

    def _gone(self, other):
        """What becomes of a connection that has ended."""
        with self._changed:
            expected = self._over or other in self._left or self._leaving
        if not expected:
            self._lost(other)

    def _lost(self, who):
        for other in self._sockets:
            if other != who:
                self._send(other, {"lost": who})
        self._finish(
            LOST,
            f"process {who} of {self.count} has ended, or cannot be reached any more: give the "
            "same command to all processes again, and the run goes on from its last checkpoint.",
        )

    def _finish(self, code, sentence):
        with self._changed:
            if self._over:
                return
            self._over = True
            self._changed.notify_all()
        self._end(code, sentence)

    def _beat(self):
        while not self._over:
            time.sleep(BEAT)
            for other in self._sockets:
                if not self._over and time.monotonic() - self._heard[other] > SILENCE:
                    self._gone(other)
                self._send(other, {"lives": self.index})


def listen(address: tuple[str, int]) -> socket.socket:
    """Where process 0 waits for the others; UserError if it cannot be."""
    host, port = address
    local = host in ("localhost", "127.0.0.1")
    try:
        return socket.create_server(("127.0.0.1" if local else "", port), backlog=1024)
    except OSError as error:
        raise UserError(
            f"process 0 cannot listen at port {port} ({error.strerror}): give --coordinator with a "
            "port that is free on its machine."
        ) from error


def receive(server: socket.socket, count: int, limit: float, end: Callable = end_process) -> Links:
    """The links of process 0, once all others are there.

    Args:
      server: of `listen`.
      count: of the processes.
      limit: seconds to wait for them.
      end: see Links.

    Raises:
      UserError: some did not come in time, or they disagree on how many there are; those that came
        are told.
    """
    sockets: dict[int, socket.socket] = {}
    until = time.monotonic() + limit
    wrong = ""
    while len(sockets) < count - 1 and not wrong:
        server.settimeout(max(0.01, until - time.monotonic()))
        try:
            connection, _ = server.accept()
        except TimeoutError:
            missing = [str(i) for i in range(1, count) if i not in sockets]
            wrong = (
                f"of {count} processes {', '.join(missing[:10])} did not come within {limit:g} "
                "seconds: start them all, with the same --coordinator."
            )
            break
        greeting = _greeting(connection)
        if greeting is None:
            connection.close()
            continue
        index, of = greeting
        if of != count or not 0 < index < count or index in sockets:
            wrong = (
                f"a process came as number {index} of {of}, and process 0 was told of {count}, "
                f"of which {len(sockets) + 1} are there: start each with the same "
                "--processes and a --process of its own."
            )
            sockets[-1] = connection
        else:
            sockets[index] = connection
    for connection in sockets.values():
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps({"welcome": not wrong, "why": wrong}).encode() + b"\n")
            connection.settimeout(None)
    if wrong:
        for connection in sockets.values():
            connection.close()
        raise UserError(wrong)
    return Links(0, count, sockets, end)


def _greeting(connection) -> tuple[int, int] | None:
    """(index, count) of a process that has connected; None of something else."""
    connection.settimeout(_HELLO)
    try:
        hello = _message(_line(connection), {"index": int, "count": int})
        return hello["index"], hello["count"]
    except (OSError, ValueError):
        return None


def _message(line: bytes, shape: dict | None = None) -> dict:
    """Reads a message; ValueError unless it is of the shape, or of that of some message."""
    message = strict_json.loads(line.decode())
    strict_json.check(message, {})
    if shape is None:
        shape = next((shape for name, shape in _SHAPES.items() if name in message), {})
    strict_json.check(message, shape)
    return message


def _line(connection) -> bytes:
    """A line, byte by byte, so that none of what follows it is read."""
    line = b""
    while not line.endswith(b"\n") and len(line) < 10_000:
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError("ended")
        line += byte
    return line


def connect(
    address: tuple[str, int], index: int, count: int, limit: float, end: Callable = end_process
) -> Links:
    """The links of another process than 0, once all are there; see `receive`.

    Raises:
      UserError: process 0 cannot be reached in time, or sends this one away; says why.
    """
    until = time.monotonic() + limit
    while True:
        left = until - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError("nobody answers")
            connection = socket.create_connection(address, timeout=min(left, 10.0))
            break
        except OSError as error:
            if left <= 0.5:
                raise UserError(
                    f"process 0 cannot be reached at {address[0]}:{address[1]} within {limit:g} "
                    f"seconds ({error}): start it, or give its --coordinator to all."
                ) from error
            time.sleep(0.5)
    try:
        connection.sendall(json.dumps({"index": index, "count": count}).encode() + b"\n")
        # Process 0 waits as long as this one, and may have begun later.
        connection.settimeout(limit + _HELLO)
        answer = _message(_line(connection), {"welcome": bool, "why": str})
    except (OSError, ValueError) as error:
        connection.close()
        raise UserError(
            f"what answers at {address[0]}:{address[1]} is no process 0 of a run, or has left: "
            "give another --coordinator, or start again."
        ) from error
    connection.settimeout(None)
    if not answer["welcome"]:
        connection.close()
        raise UserError(answer["why"])
    return Links(index, count, {0: connection}, end)
