"""Frames between places: what they say, who may send them, what becomes of who lies or is silent."""

from __future__ import annotations

import hmac
import os
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.nodes import NODE
from mcrank.scale.frames import KINDS, TYPES, PeerLost, frame, opened
from mcrank.scale.mesh import Mesh
from mcrank.scale.sockets import Encryption, Invitation, Sockets, join, listen, pairs
from tests.scale.places import in_mesh

HOST = "127.0.0.1"


@pytest.mark.parametrize("size", [2, 3, 6])
def test_all_methods_of_sums(size):
    stream = np.random.default_rng(size)
    hists = stream.integers(-(2**60), 2**60, (size, 3, 40)) // size
    cuts = sorted([0, 40, *stream.integers(0, 41, size - 1).tolist()])
    records = np.zeros((size, 4), dtype=NODE)
    records["terms"] = stream.integers(0, 3, (size, 4))
    records["feature"] = np.arange(size)[:, None]
    numbers = stream.normal(size=(size, 7))

    def work(rank, mesh):
        own = slice(cuts[mesh.rank], cuts[mesh.rank + 1])
        assert np.array_equal(mesh.add(hists[rank]), hists.sum(axis=0))
        assert mesh.most(numbers[rank, 0]) == numbers[:, 0].max()
        assert np.array_equal(mesh.least(numbers[rank]), numbers.min(axis=0))
        lengths = [len(part) for part in mesh.gather(np.arange(rank, dtype=np.uint64))]
        assert lengths == list(range(size))
        given = mesh.exchange([np.full(r, rank, dtype=np.float32) for r in range(size)])
        assert [part.tolist() for part in given] == [[r] * rank for r in range(size)]
        found = mesh.scatter(hists[rank].copy(), cuts)
        assert np.array_equal(found[:, own], hists.sum(axis=0)[:, own])
        best = mesh.agree(records[rank])
        assert np.array_equal(best["feature"], records["terms"].argmax(axis=0))
        return True

    assert all(in_mesh(list(range(size)), work))


@pytest.mark.parametrize("size", [2, 3])
def test_histograms_of_fewer_and_of_more_trees_use_the_same_room(size):
    """Trees of a round end at different steps, and room is kept from one step to the next."""
    stream = np.random.default_rng(size)
    steps = [stream.integers(-99, 99, (size, trees, 4 * size)) for trees in (3, 5, 1, 5, 2)]
    cuts = list(range(0, 4 * size + 1, 4))

    def work(rank, mesh):
        own = slice(cuts[mesh.rank], cuts[mesh.rank + 1])
        sums = [mesh.scatter(hists[rank].copy(), cuts)[:, own] for hists in steps]
        return all(np.array_equal(a, hists.sum(axis=0)[:, own]) for a, hists in zip(sums, steps, strict=True))

    assert all(in_mesh(list(range(size)), work))


def test_frames_larger_than_any_buffer():
    def work(rank, mesh):
        parts = mesh.exchange([np.full(2_000_000, rank, dtype=np.int64) for _ in range(3)])
        return [int(part[-1]) for part in parts]

    assert in_mesh([0, 1, 2], work) == [[0, 1, 2]] * 3


@settings(max_examples=200)
@given(st.binary(min_size=24, max_size=24))
def test_no_head_but_the_right_one_is_opened(head):
    right = frame("add", 1, 7, np.zeros(3, dtype=np.int64)).head
    if head != right:
        with pytest.raises(PeerLost):
            opened(head, "add", 1, 7, np.dtype("i8"), 3)


@pytest.mark.parametrize("at", range(24))
def test_every_byte_of_a_head_counts(at):
    right = bytearray(frame("gather", 2, 9, np.zeros(5, dtype=np.float32)).head)
    right[at] ^= 0x55
    with pytest.raises(PeerLost, match="place 2"):
        opened(bytes(right), "gather", 2, 9, np.dtype("f4"), 5)


def liar(sent):
    """A place beside one that sends these bytes; returns what it says to an `add`."""
    here, there = socket.socketpair()
    mesh = Mesh(Sockets(0, {1: here}, limit=1.0))
    there.sendall(sent)
    try:
        with pytest.raises(PeerLost) as told:
            mesh.add(np.array([1, 2]))
    finally:
        there.close()
        mesh.close()
    return str(told.value)


@pytest.mark.slow
def test_wrong_frames_are_named():
    good = frame("add", 1, 1, np.array([5, 6]))
    assert "kind" in liar(frame("most", 1, 1, np.array([5, 6])).head)
    assert "due" in liar(frame("add", 1, 2, np.array([5, 6])).head)
    assert "due" in liar(frame("add", 1, 1, np.array([5.0, 6.0])).head)
    assert "numbers" in liar(frame("add", 1, 1, np.arange(9)).head)
    assert "sent nothing for 1 seconds" in liar(good.head + bytes(good.body)[:5])
    assert "due" in liar(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def test_a_place_that_dies_or_is_silent_is_told_in_time():
    here, there = socket.socketpair()
    mesh = Mesh(Sockets(0, {1: here}, limit=0.5))
    there.close()
    with pytest.raises(PeerLost, match="place 1"):
        mesh.add(np.array([1]))
    carriers = pairs(2, limit=0.5)
    with pytest.raises(PeerLost, match=r"place 1 sent nothing for 0\.5 seconds"):
        Mesh(carriers[0]).add(np.array([1]))
    for closing in (mesh, *carriers):
        closing.close()


@pytest.mark.slow
def test_a_silent_place_that_answers_has_ten_times_as_long():
    here, there = socket.socketpair()
    asked = []
    mesh = Mesh(Sockets(0, {1: here}, limit=0.1, answers=lambda rank: asked.append(rank) or True))
    with pytest.raises(PeerLost, match="sent nothing for 1 seconds, although it answers"):
        mesh.add(np.array([1]))
    assert set(asked) == {1}
    there.close()
    mesh.close()


def joined(tokens, encryption=None, before=None):
    """What comes of places that join with these tokens: a carrier each, or the error."""
    listeners = [listen(HOST) for _ in tokens]
    addresses = tuple(listener.getsockname() for listener in listeners)
    if before is not None:
        before(addresses)

    def work(rank):
        try:
            return join(Invitation(rank, addresses, tokens[rank]), listeners[rank], encryption)
        except PeerLost as error:
            return error

    with ThreadPoolExecutor(len(tokens)) as pool:
        found = list(pool.map(work, range(len(tokens))))
    assert [listener.fileno() for listener in listeners] == [-1] * len(listeners)  # nobody listens any more
    return found


def add_all(carriers):
    meshes = [Mesh(carrier) for carrier in carriers]
    with ThreadPoolExecutor(len(meshes)) as pool:
        found = list(pool.map(lambda mesh: int(mesh.add(np.array([mesh.rank + 1]))[0]), meshes))
    for mesh in meshes:
        mesh.close()
    return found


def test_those_who_know_the_token_join():
    token = os.urandom(32)
    assert add_all(joined([token] * 4)) == [10] * 4


@pytest.mark.slow
def test_who_does_not_know_the_token_is_left_out():
    listeners = [listen(HOST) for _ in range(2)]
    addresses = tuple(listener.getsockname() for listener in listeners)
    refused = threading.Event()

    def wait():
        with pytest.raises(InterruptedError):  # it goes on waiting for the right one
            join(Invitation(0, addresses, os.urandom(32)), listeners[0], check=lambda: stop(refused))

    waiting = threading.Thread(target=wait)
    waiting.start()
    with pytest.raises(PeerLost, match="place 0 does not know the token"):
        join(Invitation(1, addresses, os.urandom(32)), listeners[1])
    refused.set()
    waiting.join()
    assert [listener.fileno() for listener in listeners] == [-1, -1]


def stop(event):
    if event.is_set():
        raise InterruptedError


def test_who_never_comes_is_waited_for_so_long():
    listener = listen(HOST)
    address = listener.getsockname()
    with pytest.raises(PeerLost, match=r"place 1 did not join within 0\.2 seconds"):
        join(Invitation(0, (address, address), b"", joining=0.2), listener)


def test_strangers_at_the_port_change_nothing():
    token, strangers = os.urandom(32), []

    def knock(addresses):
        for said in (b"", b"GET / HTTP/1.0\r\n\r\n", b"mcrank1\n" + bytes(24), os.urandom(400)):
            stranger = socket.create_connection(addresses[0])
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            strangers.append(stranger)

    assert add_all(joined([token] * 3, before=knock)) == [6] * 3
    for stranger in strangers:
        stranger.close()


@pytest.mark.slow
def test_nothing_is_told_to_who_does_not_prove_himself():
    token = os.urandom(32)
    listener = listen(HOST)
    address = listener.getsockname()
    invitation, answered = Invitation(0, (address, address), token), threading.Event()

    def wait():
        with pytest.raises(InterruptedError):
            join(invitation, listener, check=lambda: stop(answered))

    thread = threading.Thread(target=wait)
    thread.start()
    with socket.create_connection(address) as caller:
        caller.sendall(b"mcrank1\n" + (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + bytes(16))
        answer = caller.recv(100)
        assert len(answer) == 48
        caller.sendall(hmac.digest(bytes(32), b"caller", "sha256"))
        assert caller.recv(100) == b""
    answered.set()
    thread.join()


def test_listens_at_one_address_only():
    with listen(HOST) as listener:
        assert listener.getsockname()[0] == HOST


def test_kinds_and_types_have_room_in_a_head():
    assert len(KINDS) < 256
    assert len(TYPES) < 256


@pytest.fixture(scope="module")
def encryption(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=mcrank", "-days", "1", "-keyout", str(key), "-out", str(cert)],
        capture_output=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    contexts = []
    for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
        context = ssl.create_default_context(purpose, cafile=str(cert))
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        context.load_cert_chain(str(cert), str(key))
        contexts.append(context)
    return Encryption(*contexts)


def test_encrypted(encryption):
    token = os.urandom(32)
    carriers = joined([token] * 3, encryption=encryption)
    meshes = [Mesh(carrier) for carrier in carriers]

    def work(mesh):
        parts = mesh.exchange([np.full(400_000, mesh.rank, dtype=np.int64) for _ in range(3)])
        return [int(part.sum()) for part in parts] + [int(mesh.add(np.array([1]))[0])]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, meshes)) == [[0, 400_000, 800_000, 3]] * 3
    for mesh in meshes:
        mesh.close()


def test_without_a_certificate_nobody_joins(encryption):
    token = os.urandom(32)

    def plain(addresses):
        with socket.create_connection(addresses[0]) as stranger:
            stranger.sendall(b"mcrank1\n" + bytes(24))

    assert add_all(joined([token] * 2, encryption=encryption, before=plain)) == [3] * 2
