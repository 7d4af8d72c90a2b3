"""Processes that meet, speak, leave and are lost; here each is a thread."""

import contextlib
import json
import queue
import re
import socket
import threading
import time

import pytest

from zoo.errors import UserError
from zoo.processes import links, relay


def together(count, act, limit=5.0):
    """What act(links of process i) gave in each of `count` processes, an error as itself, and
    {process: (code, sentence)} of those that were ended."""
    ended, results = {}, {}
    server = links.listen(("127.0.0.1", 0))
    address = server.getsockname()

    def process(index):
        def end(code, sentence):
            ended[index] = code, sentence

        try:
            if index:
                own = links.connect(address, index, count, limit, end)
            else:
                own = links.receive(server, count, limit, end)
            try:
                results[index] = act(own)
            finally:
                own.leave(0)
                own.close()
        except UserError as error:
            results[index] = error

    threads = [threading.Thread(target=process, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    server.close()
    return [results[index] for index in range(count)], ended


def test_all_hear_what_each_says():
    def act(own):
        first = own.exchange(f"a{own.index}")
        time.sleep(0.05 * own.index)  # whoever comes late
        return first, own.exchange("é\n" * own.index)

    expected = ["a0", "a1", "a2"], ["", "é\n", "é\né\n"]
    assert together(3, act) == ([expected] * 3, {})


@pytest.mark.parametrize("who", [0, 1, 2])
def test_who_leaves_says_why_to_those_that_wait(who):
    def act(own):
        if own.index == who:
            return own.leave(2, "the disk is full.")
        return own.exchange("waiting")

    results, ended = together(3, act)
    assert results[who] is True and not ended  # all left in time
    for index in {0, 1, 2} - {who}:
        assert str(results[index]) == f"process {who}: the disk is full."


def test_who_stays_when_another_has_left_is_ended(monkeypatch):
    monkeypatch.setattr(links, "GRACE", 0.2)

    def act(own):
        if own.index == 1:
            return own.leave(2, "its text is missing.")
        time.sleep(0.6)  # of a collective that never ends

    results, ended = together(2, act)
    assert results[0] is None and results[1] is False
    assert ended == {0: (2, "process 1 has left this run of 2: its text is missing.")}


@pytest.mark.parametrize("who", [0, 2])
def test_a_process_that_is_killed_ends_the_others(who, monkeypatch):
    monkeypatch.setattr(links, "GRACE", 0.5)  # who is killed does not wait for the others
    gone = threading.Event()

    def act(own):
        if own.index == who:  # the system closes what a killed process had
            own._leaving = own._over = True
            for connection in own._sockets.values():
                connection.shutdown(socket.SHUT_RDWR)
            gone.set()
        gone.wait(5)
        time.sleep(0.5)

    _, ended = together(3, act)
    for index in {0, 1, 2} - {who}:
        code, sentence = ended[index]
        assert code == 75
        assert sentence.startswith(f"process {who} of 3 has ended, or cannot be reached any more")


def test_a_machine_that_vanishes_is_missed(monkeypatch):
    monkeypatch.setattr(links, "BEAT", 0.05)
    monkeypatch.setattr(links, "SILENCE", 0.4)
    ended = []
    server = links.listen(("127.0.0.1", 0))

    def silent():
        connection = socket.create_connection(server.getsockname())
        connection.sendall(b'{"index": 1, "count": 2}\n')
        time.sleep(1.5)
        connection.close()

    thread = threading.Thread(target=silent)
    thread.start()
    own = links.receive(server, 2, 5.0, lambda *what: ended.append(what))
    until = time.monotonic() + 5
    while not ended and time.monotonic() < until:
        time.sleep(0.02)
    assert thread.is_alive() and ended[0][0] == 75 and "process 1 of 2" in ended[0][1]
    own.close()
    thread.join()
    server.close()


def test_strangers_at_the_door_are_sent_away():
    server = links.listen(("127.0.0.1", 0))
    strangers = [socket.create_connection(server.getsockname()) for _ in range(2)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
    strangers[1].close()
    found = []
    thread = threading.Thread(target=lambda: found.append(links.receive(server, 2, 5.0)))
    thread.start()
    other = links.connect(server.getsockname(), 1, 2, 5.0)
    thread.join(10)
    assert found[0].count == 2
    leaving = threading.Thread(target=found[0].leave, args=(0,))
    leaving.start()
    assert other.leave(0)
    leaving.join(10)
    found[0].close()
    other.close()
    strangers[0].close()
    server.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_coordinator_that_cannot_be_reached_is_given_up():
    port, begun = free_port(), time.monotonic()
    with pytest.raises(UserError) as caught:
        links.connect(("127.0.0.1", port), 1, 2, 1.0)
    assert time.monotonic() - begun < 3
    assert f"process 0 cannot be reached at 127.0.0.1:{port} within 1 seconds" in str(caught.value)


def test_an_address_of_something_else_is_said(monkeypatch):
    monkeypatch.setattr(links, "_HELLO", 0.2)
    server = socket.create_server(("127.0.0.1", 0))  # which never answers
    with pytest.raises(UserError, match="is no process 0 of a run, or has left"):
        links.connect(server.getsockname(), 1, 2, 0.3)
    server.close()


def test_processes_that_do_not_come_are_named():
    server = links.listen(("127.0.0.1", 0))
    with pytest.raises(
        UserError, match=re.escape("of 3 processes 1, 2 did not come within 0.1 sec")
    ):
        links.receive(server, 3, 0.1)
    server.close()


@pytest.mark.parametrize("index, count", [(1, 3), (2, 2), (0, 2)])
def test_processes_that_disagree_on_their_number_are_sent_away(index, count):
    server = links.listen(("127.0.0.1", 0))
    caught = []

    def receive():
        with contextlib.suppress(UserError):
            try:
                links.receive(server, 2, 5.0)
            except UserError as error:
                caught.append(str(error))
                raise

    thread = threading.Thread(target=receive)
    thread.start()
    with pytest.raises(UserError, match=f"a process came as number {index} of {count}") as other:
        links.connect(server.getsockname(), index, count, 5.0)
    thread.join()
    assert caught == [str(other.value)]
    server.close()


def test_a_port_that_is_taken_is_named():
    server = links.listen(("127.0.0.1", 0))
    port = server.getsockname()[1]
    with pytest.raises(UserError, match=f"process 0 cannot listen at port {port}"):
        links.listen(("127.0.0.1", port))
    server.close()


def test_the_relay_passes_on_and_stays_open_when_the_other_end_is_gone():
    server = socket.create_server(("127.0.0.1", 0))
    host, _, port = relay.to(*server.getsockname()).rpartition(":")
    here = socket.create_connection((host, int(port)))
    there, _ = server.accept()
    here.sendall(b"question")
    assert there.recv(100) == b"question"
    there.sendall(b"answer")
    assert here.recv(100) == b"answer"
    there.close()
    server.close()
    here.settimeout(0.3)
    with pytest.raises(TimeoutError):  # not the end of the stream
        here.recv(100)
    here.close()


def test_messages_are_lines_of_json():
    """Whatever a sentence has in it."""

    def act(own):
        return own.exchange(json.dumps({"a": "\n\u2028\x00"}))

    results, _ = together(2, act)
    assert [json.loads(text) for text in results[1]] == [{"a": "\n\u2028\x00"}] * 2


MESSAGES = {
    "no object": b"[]",
    "levels": b"[" * 100_000,
    "no number of the exchange": b'{"say": "a"}',
    "another type": b'{"all": "a", "exchange": 0}',
    "half a message of leaving": b'{"left": 1}',
    "lost": b'{"lost": null}',
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_that_is_none_ends_the_connection(name):
    here, there = socket.socketpair()
    ended = queue.Queue()
    one = links.Links(1, 2, {0: here}, lambda *why: ended.put(why))
    there.sendall(MESSAGES[name] + b"\n")
    code, sentence = ended.get(timeout=5)
    assert code == links.LOST and sentence.startswith("process 0 of 2 has ended, or cannot be")
    one.close()
    there.close()
