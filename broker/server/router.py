"""Router: turns frames into requests, finds the declaration of each, checks it and runs its handler."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, cast

from broker.protocol.api_keys import APIS, Api
from broker.protocol.codec import decode
from broker.protocol.frames import decode_request_header, response_parts
from broker.server.exchange import Exchange, RequestRefused
from broker.server.slices import in_slices

if TYPE_CHECKING:
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.server.declaration import Declaration, Handler, SlicedHandler
    from broker.server.exchange import Origin
    from broker.server.resources import Resources
    from broker.server.session import Session

API_VERSIONS = 18

# Whether a session may send the requests of a declaration.
Authorize = Callable[["Session", "Declaration"], bool]

_START = Struct(">hhi")


def allow_all(session: Session, declaration: Declaration) -> bool:
    """Without ACLs every client may send every request."""
    return True


class Route:
    """One kind of request, ready to be served."""

    __slots__ = ("api", "declaration", "first", "handle", "last", "max_entries")

    def __init__(self, declaration: Declaration) -> None:
        self.api: Api = APIS[declaration.request.API_KEY]
        self.declaration = declaration
        self.first, self.last = self.api.versions.start, self.api.versions.stop - 1
        self.max_entries = declaration.max_entries
        if declaration.slicing is None:
            self.handle = cast("Handler", declaration.handle)
        else:
            self.handle = in_slices(cast("SlicedHandler", declaration.handle), declaration.slicing)


class Router:
    """Opens and dispatches requests. Declarations are looked up at the first request of their kind."""

    def __init__(
        self, find: Callable[[int], Declaration | None], resources: Resources, authorize: Authorize = allow_all
    ) -> None:
        """`find` returns the declaration of an api key, or None if the key is not served."""
        self._find = find
        self._resources = resources
        self._authorize = authorize
        self._routes: dict[int, Route] = {}

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
        request = decode(route.api.request, frame, version, header.body_offset, entries=route.max_entries)
        return Exchange(connection, key, version, correlation_id, header.client_id), request

    def dispatch(self, exchange: Exchange, request: Message) -> None:
        """Authorize a request and run its handler."""
        route = self._routes[exchange.api_key]
        if not self._authorize(exchange.connection.session, route.declaration):
            raise RequestRefused(f"{exchange.connection.session.principal} may not send {route.api.name}")
        response = route.handle(request, exchange, self._resources)
        if response is not None:
            exchange.answer(response)

    def encode(self, exchange: Exchange, response: Message) -> list[Part]:
        """The answer as a frame, in parts to be written in order."""
        return response_parts(response, max(exchange.version, 0), exchange.correlation_id)

    def _add_route(self, key: int) -> Route:
        declaration = self._find(key)
        if declaration is None:
            raise RequestRefused(f"api key {key} is not served")
        route = self._routes[key] = Route(declaration)
        return route
