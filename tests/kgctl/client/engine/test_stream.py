"""What arrives in any pieces becomes whole frames, and what is written arrives whole."""

from __future__ import annotations

import itertools
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kgctl.client.engine.stream import Stream
from kgctl.client.net.errors import NotKafka, TlsFailed

LARGE = 400_000


@contextmanager
def streaming() -> Iterator[tuple[Stream, socket.socket]]:
    ours, theirs = socket.socketpair()
    stream = Stream(ours)
    try:
        yield stream, theirs
    finally:
        stream.close()
        theirs.close()


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def received(stream: Stream, theirs: socket.socket, pieces: list[bytes]) -> list[bytes]:
    frames: list[bytes] = []
    for piece in pieces:
        theirs.setblocking(False)
        rest = memoryview(piece)
        while rest:
            rest = rest[theirs.send(rest) :]
            frames += stream.read()
    while stream.has_more:
        frames += stream.read()
    return frames


@pytest.mark.parametrize("seed", range(10))
def test_frames_arrive_whole_in_whatever_pieces(seed: int) -> None:
    chosen = random.Random(seed)
    frames = [chosen.randbytes(chosen.choice([4, 5, 100, 131_068, 131_072, 131_073, LARGE])) for _ in range(12)]
    data = b"".join(map(framed, frames))
    cuts = sorted({0, len(data), *(chosen.randrange(len(data)) for _ in range(30))})
    pieces = [data[start:end] for start, end in itertools.pairwise(cuts)]
    with streaming() as (stream, theirs):
        assert received(stream, theirs, pieces) == frames


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_the_last_bytes_of_a_frame_may_come_late(size: int, left: int) -> None:
    data = framed(bytes(size))
    with streaming() as (stream, theirs):
        assert received(stream, theirs, [data[:-left]]) == []
        assert received(stream, theirs, [data[-left:]]) == [bytes(size)]


def test_what_the_socket_does_not_take_at_once_is_sent_later() -> None:
    parts = [bytes([number]) * 1000 * number for number in range(1, 60)]
    with streaming() as (stream, theirs):
        stream.write(parts)
        assert stream.is_writing
        found = bytearray()
        while stream.is_writing or len(found) < sum(map(len, parts)):
            found += theirs.recv(50_000)
            stream.flush()
        assert bytes(found) == b"".join(parts)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"HTTP/1.1 400 Bad Request", NotKafka),
        (b"\x15\x03\x03\0\x02\x02\x28", TlsFailed),
        (b"\xff\xff\xff\xff", NotKafka),
    ],
)
def test_what_is_no_frame_ends_the_connection(data: bytes, kind: type[Exception]) -> None:
    with streaming() as (stream, theirs):
        theirs.sendall(data)
        with pytest.raises(kind):
            stream.read()


def test_the_end_of_the_connection_is_an_error() -> None:
    with streaming() as (stream, theirs):
        theirs.close()
        with pytest.raises(EOFError):
            stream.read()
