"""Encodes requests into frames and decodes responses from frames, without I/O."""

from __future__ import annotations

import struct
from typing import TypeVar

from broker.protocol import codec, frames
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import BadValue, NotKafka, TlsFailed

# Brokers bound answers by fetch.max.bytes (55 MiB) and message.max.bytes; a larger length means another protocol.
MAX_RESPONSE_BYTES = 256 << 20
_UNSUPPORTED = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)

M = TypeVar("M", bound=Message)


def request_frame(request: Message, version: int, correlation_id: int, client_id: str) -> list[codec.Part]:
    """The buffers of one request; record batches stay separate buffers. Raises BadValue if a value does not fit."""
    name = client_id.encode()
    flexible = version >= request.FLEXIBLE_SINCE
    try:
        header = struct.pack(">hhih", request.API_KEY, version, correlation_id, len(name))
        first, *others = codec.encode_parts(request, version)
    except (codec.EncodeError, struct.error) as error:
        raise BadValue(f"a value does not fit into the request: {error}") from error
    header += name + (b"\0" if flexible else b"")
    size = len(header) + len(first) + sum(len(part) for part in others)
    return [b"".join((struct.pack(">i", size), header, first)), *others]  # type: ignore[arg-type]


def check_size(size: int) -> None:
    """Raise NotKafka or TlsFailed if the four bytes before a response cannot be its length."""
    if 4 <= size <= MAX_RESPONSE_BYTES:
        return
    start = struct.pack(">i", size)
    if start == b"HTTP":
        raise NotKafka("an HTTP server answers there, not a Kafka broker")
    if start[:2] == b"\x15\x03":
        raise TlsFailed("the listener requires TLS; set security.protocol=SSL or SASL_SSL")
    raise NotKafka("the answer is not in Kafka's protocol")


def read_response(cls: type[M], version: int, frame: bytes) -> M:
    """Decode a response frame with its header. Raises NotKafka if it cannot be decoded."""
    is_refused = cls.API_KEY == ApiVersionsResponse.API_KEY and frame[4:6] == _UNSUPPORTED
    try:
        # KIP-511: a broker that does not know the version answers in version 0.
        return frames.decode_response(cls, frame, 0 if is_refused else version)[1]
    except codec.DecodeError as error:
        if is_refused:
            # Whatever follows the error code: the request may be repeated in version 0.
            return cls(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[])  # type: ignore[call-arg]
        raise NotKafka(f"the answer cannot be decoded: {error}") from error
