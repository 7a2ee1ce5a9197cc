"""Api key to handler: which requests are served, in which versions, and how frames become requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any

from broker.protocol.api_keys import APIS, Api
from broker.protocol.codec import decode
from broker.protocol.frames import decode_request_header, response_parts
from broker.server.exchange import Exchange

if TYPE_CHECKING:
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.server.connection import Connection
    from broker.server.resources import Resources

API_VERSIONS = 18
# What the arrays of one request hold together: a bound on how long it keeps the others waiting, and on the memory that it
# grows to. Ten thousand groups with a topic and a partition each are within it.
MAX_ENTRIES = 30_000
# Of requests that look longer at each: CreateTopics, DeleteTopics, DescribeConfigs, AlterConfigs, CreatePartitions and
# IncrementalAlterConfigs.
FEWER_ENTRIES, WITH_FEWER = 10_000, frozenset({19, 20, 32, 33, 37, 44})
# Answers a request at once by what it returns, or later through its exchange and returns None.
Handler = Callable[[Any, Exchange, "Resources"], "Message | None"]

_START = Struct(">hhi")


class RequestRefused(Exception):
    """The connection is to be closed without an answer to this request; the text says why."""


class Route:
    """One kind of request that is served."""

    __slots__ = ("api", "entries", "first", "handle", "last")

    def __init__(self, api: Api, handle: Handler) -> None:
        self.api = api
        self.handle = handle
        self.first, self.last = api.versions.start, api.versions.stop - 1
        self.entries = FEWER_ENTRIES if api.request.API_KEY in WITH_FEWER else MAX_ENTRIES


class Router:
    """Turns frames into requests for handlers. `handlers` names for each api key its handler, "module:function"."""

    def __init__(self, handlers: Mapping[int, str], resources: Resources) -> None:
        self._handlers = handlers
        self._resources = resources
        self._routes: dict[int, Route] = {}

    @property
    def served(self) -> list[Api]:
        """Every kind of request that has a handler."""
        return [APIS[key] for key in sorted(self._handlers)]

    def open(self, frame: bytes, connection: Connection) -> tuple[Exchange, Message]:
        """Decode a request. Raises RequestRefused or DecodeError for one that gets no answer."""
        if len(frame) < _START.size:
            raise RequestRefused(f"a request of {len(frame)} bytes is too short")
        key, version, correlation_id = _START.unpack_from(frame)
        route = self._routes.get(key) or self._find(key)
        if not route.first <= version <= route.last:
            if key != API_VERSIONS:
                raise RequestRefused(f"{route.api.name} version {version} is not supported")
            # KIP-511: the answer says in the oldest form which versions there are.
            return Exchange(connection, route, -1, correlation_id, None), route.api.request()
        header = decode_request_header(frame)
        request = decode(route.api.request, frame, version, header.body_offset, entries=route.entries)
        return Exchange(connection, route, version, correlation_id, header.client_id), request

    def dispatch(self, exchange: Exchange, request: Message) -> None:
        """Run the handler of a request."""
        response = exchange.route.handle(request, exchange, self._resources)
        if response is not None:
            exchange.answer(response)

    def encode(self, exchange: Exchange, response: Message) -> list[Part]:
        """The answer as a frame, in parts to be written one after another."""
        return response_parts(response, max(exchange.version, 0), exchange.correlation_id)

    def _find(self, key: int) -> Route:
        place = self._handlers.get(key)
        if place is None:
            raise RequestRefused(f"api key {key} is not served")
        module, _, function = place.partition(":")
        handle: Handler = getattr(import_module(f"broker.server.handlers.{module}"), function)
        route = self._routes[key] = Route(APIS[key], handle)
        return route
