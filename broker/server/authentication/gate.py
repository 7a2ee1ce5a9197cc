"""SaslGate: lets a client in once it has authenticated, and again when its session expires.

States and answers are those of Kafka's SaslServerAuthenticator, except that a request other than those of authentication gets no
answer between SaslHandshake and the last token.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
from broker.security.sasl.mechanism import AuthenticationFailed
from broker.server.exchange import RequestRefused

if TYPE_CHECKING:
    from broker.security.sasl.mechanism import Identity, SaslServer
    from broker.server.authentication.offered import Offered
    from broker.server.session import Session

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
# Frames of one authentication; the longest one that clients have needs six.
MAX_FRAMES = 20
_NO_SASL = "the client has not authenticated; its security.protocol must be that of the listener"
# A client that authenticates again sooner gets ILLEGAL_SASL_STATE.
MIN_REAUTHENTICATION_S = 1.0
# Messages repeat names that clients choose.
MAX_MESSAGE_CHARACTERS = 1000
AUTHENTICATED_ALREADY = "SaslAuthenticate request received after successful authentication"


class _State(Enum):
    START = auto()  # ApiVersions or SaslHandshake may follow
    VERSIONS_KNOWN = auto()  # SaslHandshake may follow
    TOKENS = auto()  # in SaslAuthenticate requests
    BARE_TOKENS = auto()  # after SaslHandshake version 0
    ENDING = auto()  # whatever follows closes the connection
    OPEN = auto()  # every request may follow


class SaslGate:
    """The SASL conversation of one connection."""

    def __init__(
        self, offered: Offered, session: Session, now_s: Callable[[], float], opened: Callable[[], None]
    ) -> None:
        """Call `opened` when the client has authenticated for the first time."""
        self.frame_bytes = offered.frame_bytes
        self._offered = offered
        self._session = session
        self._now_s = now_s
        self._opened = opened
        self._state = _State.START
        self._frames = 0
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._reauthenticated_at: float | None = None

    def take(self, frame: bytes) -> bytes | None:
        key = int.from_bytes(frame[:2], "big") if len(frame) > 2 else -1
        if self._state is _State.OPEN:
            self._admit(key)
            return None
        self._frames += 1
        if self._frames > MAX_FRAMES:
            raise RequestRefused("the client has not authenticated within a reasonable number of requests")
        match self._state:
            case _State.BARE_TOKENS:
                return self._bare_step(frame)
            case _State.ENDING:
                raise self._failed("the mechanism cannot change when a client authenticates again")
            case _State.TOKENS if key not in (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE):
                refusal = None if self._server is None else self._server.refusal
                raise self._failed(refusal or "a token was expected")
            case _State.START if key not in (SASL_HANDSHAKE, API_VERSIONS):
                raise RequestRefused(_NO_SASL)
            case _State.VERSIONS_KNOWN if key != SASL_HANDSHAKE:
                raise RequestRefused(_NO_SASL)
        return None

    def versions_answered(self) -> None:
        if self._state is _State.TOKENS:
            answer = ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, api_keys=[])
            raise RequestRefused("a token was expected", answer=answer, delay_s=self._offered.failure_delay_s)
        if self._state is _State.START:
            self._state = _State.VERSIONS_KNOWN

    def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        illegal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
        if self._state is _State.OPEN:
            return illegal
        if self._state is _State.TOKENS:
            raise RequestRefused("a token was expected", answer=illegal, delay_s=self._offered.failure_delay_s)
        offered = list(self._offered.mechanisms)
        make = self._offered.mechanisms.get(mechanism)
        if make is None:
            reason = f"the mechanism {mechanism[:40]!r} is not one of {', '.join(offered)}"
            if self._session.authenticated:
                raise RequestRefused(reason)
            refusal = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=offered)
            raise RequestRefused(reason, answer=refusal, delay_s=self._offered.failure_delay_s)
        if self._session.authenticated and mechanism != self._mechanism:
            self._state = _State.ENDING
        else:
            self._state = _State.TOKENS if version >= 1 else _State.BARE_TOKENS
            self._mechanism = mechanism
            self._server = make()
        return SaslHandshakeResponse(mechanisms=offered)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        if self._state is _State.OPEN:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=AUTHENTICATED_ALREADY
            )
        try:
            challenge, lifetime_ms = self._step(token)
        except AuthenticationFailed as failure:
            how = "re-authentication" if self._session.authenticated else "authentication"
            # The same sentence for every reason does not say whether the user exists.
            general = (
                f"Authentication failed during {how} due to invalid credentials with SASL mechanism {self._mechanism}"
            )
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=(failure.shown or general)[:MAX_MESSAGE_CHARACTERS],
            )
            raise self._failed(str(failure), answer) from None
        return SaslAuthenticateResponse(error_message="", auth_bytes=challenge, session_lifetime_ms=lifetime_ms)

    def _admit(self, key: int) -> None:
        """Check a frame of a client that has authenticated. Its SaslHandshake begins a new conversation."""
        session, now = self._session, self._now_s()
        before = self._reauthenticated_at
        if key == SASL_HANDSHAKE and (before is None or now - before >= MIN_REAUTHENTICATION_S):
            self._reauthenticated_at = now
            self._frames = 1
            self._state = _State.VERSIONS_KNOWN
        elif session.expires_at is not None and now >= session.expires_at:
            raise RequestRefused("the session has expired")

    def _bare_step(self, token: bytes) -> bytes:
        try:
            return self._step(token)[0]
        except AuthenticationFailed as failure:
            raise self._failed(str(failure)) from None

    def _step(self, token: bytes) -> tuple[bytes, int]:
        """The answer to a token, and the lifetime of the session if it was the last one."""
        assert self._server is not None
        answer = self._server.step(token)
        identity = self._server.identity
        return answer, 0 if identity is None else self._finish(identity)

    def _finish(self, identity: Identity) -> int:
        """Let the client in. Returns the lifetime of its session in milliseconds; 0 if it has none."""
        session, principal = self._session, f"User:{identity.name}"
        if session.authenticated and principal != session.principal:
            before, after = session.principal.replace(":", ".", 1), principal.replace(":", ".", 1)
            text = f"Cannot change principals during re-authentication from {before}: {after}"
            raise AuthenticationFailed(text, shown=text)
        lifetime_ms = self._offered.lifetime_ms(self._mechanism, identity)
        session.expires_at = None if lifetime_ms is None else self._now_s() + lifetime_ms / 1000
        self._server = None
        self._state = _State.OPEN
        if not session.authenticated:
            session.principal = principal
            session.authenticated = True
            self._opened()
        return lifetime_ms or 0

    def _failed(self, reason: str, answer: SaslAuthenticateResponse | None = None) -> RequestRefused:
        text = f"authentication with {self._mechanism} failed: {reason}"
        return RequestRefused(text, answer=answer, delay_s=self._offered.failure_delay_s)
