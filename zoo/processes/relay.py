"""A stand-in on this machine for JAX's coordinator, which is in process 0.

JAX ends a process by abort() as soon as its connection with the coordinator ends, before anything
can be said. Through the relay the connection stays open here when process 0 is gone, and
`zoo.processes.links` ends the process with a sentence.
"""

import contextlib
import socket
import threading


def to(host: str, port: int) -> str:
    """HOST:PORT on this machine whose connections are passed on to a port of another."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(server, (host, port)), name="relay", daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def _serve(server, address):
    while True:
        here, _ = server.accept()
        try:
            there = socket.create_connection(address, timeout=10)
        except OSError:
            here.close()  # JAX tries again
            continue
        there.settimeout(None)
        for connection in (here, there):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pass_on, args=(there, here, False), daemon=True).start()
        threading.Thread(target=_pass_on, args=(here, there, True), daemon=True).start()


def _pass_on(source, sink, close: bool):
    """Copies what comes until it ends; then the other end is closed, or held open for good."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    if close:
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
    else:
        _held.append(sink)


# An object that nobody names is closed.
_held: list[socket.socket] = []
