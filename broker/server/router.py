"""Router: turns frames into requests, finds the declaration of each, checks it and runs its handler."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, cast

from broker.protocol.api_keys import APIS, Api
from broker.protocol.codec import decode
from broker.protocol.frames import decode_request_header, response_parts
from broker.server.exchange import Exchange, RequestRefused, completed
from broker.server.guards import guarded
from broker.server.slices import in_slices

if TYPE_CHECKING:
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.server.declaration import Declaration, Handler, SlicedHandler
    from broker.server.error_counts import ErrorCounts
    from broker.server.exchange import Origin
    from broker.server.resources import Resources

API_VERSIONS = 18

_START = Struct(">hhi")


class Route:
    """One kind of request, ready to be served: behind its guard, if there is an authorizer."""

    __slots__ = ("api", "first", "handle", "last", "max_entries")

    def __init__(self, declaration: Declaration, *, is_guarded: bool) -> None:
        self.api: Api = APIS[declaration.request.API_KEY]
        self.first, self.last = self.api.versions.start, self.api.versions.stop - 1
        self.max_entries = declaration.max_entries
        guard = declaration.guard if is_guarded else None
        if declaration.slicing is not None:
            self.handle: Handler = in_slices(cast("SlicedHandler", declaration.handle), declaration.slicing, guard)
        elif guard is not None:
            self.handle = guarded(guard, cast("Handler", declaration.handle))
        else:
            self.handle = cast("Handler", declaration.handle)


class Router:
    """Opens and dispatches requests. Declarations are looked up at the first request of their kind."""

    def __init__(self, find: Callable[[int], Declaration | None], resources: Resources) -> None:
        """`find` returns the declaration of an api key, or None if the key is not served."""
        self._find = find
        self._resources = resources
        self._routes: dict[int, Route] = {}
        # Set if the errors of answers are counted.
        self.errors: ErrorCounts | None = None

    def open(self, frame: bytes, connection: Origin) -> tuple[Exchange, Message]:
        """Decode a request. Raises RequestRefused or DecodeError for one that gets no answer."""
        if len(frame) < _START.size:
            raise RequestRefused(f"a request of {len(frame)} bytes is too short")
        key, version, correlation_id = _START.unpack_from(frame)
        route = self._routes.get(key) or self._add_route(key)
        if not route.first <= version <= route.last:
            if key != API_VERSIONS:
                raise RequestRefused(f"{route.api.name} version {version} is not supported")
            # KIP-511: answer in the oldest version with the supported ranges.
            return Exchange(connection, key, -1, correlation_id, None), route.api.request()
        header = decode_request_header(frame)
        client = connection.session.client
        if client.client_id != header.client_id:
            client.name(header.client_id)
        client.last_key = key
        client.requests += 1
        client.bytes_in += len(frame) + 4
        request = decode(route.api.request, frame, version, header.body_offset, entries=route.max_entries)
        return Exchange(connection, key, version, correlation_id, header.client_id), request

    def dispatch(self, exchange: Exchange, request: Message) -> None:
        """Run the handler of a request, behind its guard."""
        response = self._routes[exchange.api_key].handle(request, exchange, self._resources)
        if response is not None:
            exchange.answer(response)

    def encode(self, exchange: Exchange, response: Message) -> list[Part]:
        """The answer as a frame, in parts to be written in order."""
        if exchange.complete is not None:
            response = completed(exchange, response)
        if self.errors is not None:
            self.errors.add(exchange.api_key, response)
        return response_parts(response, max(exchange.version, 0), exchange.correlation_id)

    def _add_route(self, key: int) -> Route:
        declaration = self._find(key)
        if declaration is None:
            raise RequestRefused(f"api key {key} is not served")
        route = self._routes[key] = Route(declaration, is_guarded=self._resources.authorizer is not None)
        return route
