"""A node that is not a broker: it answers from a script, and refuses every version that it does not offer."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import decode_request_header, response_frame
from broker.protocol.messages.metadata import MetadataResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.steps import Endpoint
from tests.harness.feeding import API_VERSIONS, METADATA, offers
from tests.harness.listeners import listening_in_parallel

Answer = Callable[[Any], Message]


class Received(NamedTuple):
    api_key: int
    version: int
    client_id: str | None


@dataclass
class ScriptedNode:
    """`answers` by api key; `offered` version ranges by api key, by default all that this project knows.

    A request in a version that is not offered goes to `refused`, and its connection is closed, as a broker does it.
    """

    answers: dict[int, Answer] = field(default_factory=dict)
    offered: Mapping[int, tuple[int, int]] = field(
        default_factory=lambda: {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    )
    # A server's TLS context; None: the node speaks plaintext.
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    refused: list[Received] = field(default_factory=list)

    @contextmanager
    def listening(self) -> Iterator[Endpoint]:
        with listening_in_parallel(self._serve) as endpoint:
            yield endpoint

    def _serve(self, connection: socket.socket) -> None:
        if self.tls is None:
            self._answer_requests(connection)
            return
        with self.tls.wrap_socket(connection, server_side=True) as secured:
            self._answer_requests(secured)

    def _answer_requests(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                frame = stream.read(struct.unpack(">i", size)[0])
                header = decode_request_header(frame)
                request = Received(header.api_key, header.api_version, header.client_id)
                self.received.append(request)
                lowest, highest = self.offered.get(header.api_key, (1, 0))
                answer, version = None, header.api_version
                if lowest <= version <= highest:
                    answer = self._answer(header.api_key, decode_request(frame))
                elif header.api_key == API_VERSIONS:
                    # KIP-511: a version 0 body with the error and the ranges, whatever the version of the request.
                    answer, version = offers(dict(self.offered)), 0
                    answer.error_code = ErrorCode.UNSUPPORTED_VERSION
                if answer is None:
                    self.refused.append(request)
                    return
                connection.sendall(response_frame(answer, version, header.correlation_id))

    def _answer(self, api_key: int, request: Message) -> Message | None:
        if api_key in self.answers:
            return self.answers[api_key](request)
        return offers(dict(self.offered)) if api_key == API_VERSIONS else None


def decode_request(frame: bytes) -> Message:
    header = decode_request_header(frame)
    return decode(APIS[header.api_key].request, frame, header.api_version, header.body_offset)


def one_partition(node: ScriptedNode, endpoint: Endpoint, topic: str) -> None:
    """Let the node answer Metadata as the only broker of a cluster, the leader of the only partition of the topic."""

    def metadata(_: Any) -> MetadataResponse:
        partition = MetadataResponse.Partition(partition_index=0, leader_id=0, replica_nodes=[0], isr_nodes=[0])
        broker = MetadataResponse.Broker(node_id=0, host=endpoint.host, port=endpoint.port)
        return MetadataResponse(brokers=[broker], topics=[MetadataResponse.Topic(name=topic, partitions=[partition])])

    node.answers[METADATA] = metadata
