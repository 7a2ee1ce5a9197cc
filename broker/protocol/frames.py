"""Frames of a connection: length prefix, request and response headers, and a bounded receive buffer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeVar

from broker.light_named_tuples import NamedTuple
from broker.protocol.api_keys import APIS
from broker.protocol.codec import Part, decode, encode, encode_parts
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.varints import read_uvarint, skip_tagged_fields
from broker.protocol.wire_types import DecodeError, Message

M = TypeVar("M", bound=Message)

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">hhih")
# A handshake record of TLS begins with its type and version, which a plaintext listener would read as a length.
_TLS_RECORDS = range(0x160300, 0x160305)


class RequestHeader(NamedTuple):
    """The header of a request. The body starts at `body_offset` of the same frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


def decode_request_header(frame: bytes) -> RequestHeader:
    """Read the header of any request. For an unknown API, `body_offset` is unreliable: the header may be longer."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = _REQUEST.size
        client_id = None
        if length > len(frame) - position or length < -1:
            raise DecodeError("the client id has a wrong length")
        if length >= 0:
            client_id = frame[position : position + length].decode()
            position += length
        if api_key in APIS and APIS[api_key].is_flexible(api_version):
            count, position = read_uvarint(frame, position)
            position = skip_tagged_fields(frame, position, count)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def request_frame(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request with its header and length prefix."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    header = _REQUEST.pack(message.API_KEY, version, correlation_id, length) + name
    if version >= message.FLEXIBLE_SINCE:
        header += b"\0"
    body = encode(message, version)
    return _LENGTH.pack(len(header) + len(body)) + header + body


def response_parts(message: Message, version: int, correlation_id: int) -> list[Part]:
    """A response with its header and length prefix, as buffers to send in order."""
    parts = encode_parts(message, version)
    flexible = _has_tagged_header(type(message), version)
    length = 4 + flexible + sum(len(part) for part in parts)
    head = struct.pack(">ii", length, correlation_id) + b"\0" * flexible
    first = parts[0]
    if isinstance(first, bytes) and len(first) < 65536:
        parts[0] = head + first
    else:
        parts.insert(0, head)
    return parts


def response_frame(message: Message, version: int, correlation_id: int) -> bytes:
    """Like `response_parts`, but joined; only for responses whose records are bytes."""
    return b"".join(response_parts(message, version, correlation_id))  # type: ignore[arg-type]


def correlation_id_of(frame: bytes) -> int:
    """The correlation id at the start of a response frame."""
    if len(frame) < 4:
        raise DecodeError("a response is shorter than its header")
    return int.from_bytes(frame[:4], "big", signed=True)


def decode_response(cls: type[M], frame: bytes, version: int) -> tuple[int, M]:
    """(correlation id, message) of a response frame."""
    correlation_id = correlation_id_of(frame)
    position = 4
    if _has_tagged_header(cls, version):
        try:
            if frame[4]:
                count, position = read_uvarint(frame, position)
                position = skip_tagged_fields(frame, position, count)
            else:
                position = 5
        except IndexError as error:
            raise DecodeError(f"response header: {error}") from error
    return correlation_id, decode(cls, frame, version, position)


def _has_tagged_header(cls: type[Message], version: int) -> bool:
    # A client that sends ApiVersions does not know yet whether the broker supports flexible versions.
    return version >= cls.FLEXIBLE_SINCE and cls.API_KEY != ApiVersionsRequest.API_KEY


class FrameBuffer:
    """Splits received chunks into frames.

    It holds only received bytes: the length that a client sends allocates nothing.
    """

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._pending = bytearray()
        self._wanted = _LENGTH.size

    @property
    def pending_bytes(self) -> int:
        """The size of the incomplete frame in bytes."""
        return len(self._pending)

    def feed(self, chunk: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Add received bytes and yield each complete frame without its length prefix.

        Raises DecodeError as soon as a length is negative or over the limit; close the connection then.
        Exhaust the iterator before the next call.
        """
        if self._pending:
            self._pending += chunk
            frame = self._take_pending()
            if frame is None:
                return
            chunk = bytes(self._pending)
            self._pending = bytearray()
            yield frame
        data = bytes(chunk)
        position, size = 0, len(data)
        while size - position >= _LENGTH.size:
            start = position + _LENGTH.size
            end = start + self._length_at(data, position)
            if end > size:
                self._wanted = end - position
                break
            yield data[start:end]
            position = end
        if position < size:
            self._pending += data[position:]

    def _take_pending(self) -> bytes | None:
        """The pending frame, once it is complete."""
        if self._wanted == _LENGTH.size <= len(self._pending):
            self._wanted += self._length_at(self._pending, 0)
        if len(self._pending) < self._wanted:
            return None
        with memoryview(self._pending) as view:
            frame = bytes(view[_LENGTH.size : self._wanted])
        del self._pending[: self._wanted]
        self._wanted = _LENGTH.size
        return frame

    def _length_at(self, data: bytes | bytearray, position: int) -> int:
        length: int = _LENGTH.unpack_from(data, position)[0]
        if not 0 <= length <= self.max_frame_bytes:
            if length >> 8 in _TLS_RECORDS:
                raise DecodeError("the client speaks TLS, but this listener does not")
            raise DecodeError(f"a frame of {length} bytes: at most {self.max_frame_bytes} are accepted")
        return length
