"""Offered: the mechanisms of one SASL listener, made from the configuration."""

from __future__ import annotations

import logging
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from broker.config.option import ConfigError
from broker.security import jaas
from broker.security.credentials.errors import BadCredentials
from broker.security.sasl import scram
from broker.server.resources import wall_ms

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.security.credentials.scram_users import ScramUsers
    from broker.security.sasl.mechanism import Identity, SaslServer

NONCE_BYTES = 24
SUPPORTED = ("PLAIN", *scram.TYPES, "OAUTHBEARER")
HANDLER_OPTION = "sasl.server.callback.handler.class"
KEY_SET_HANDLER = "OAuthBearerValidatorCallbackHandler"
# The classes of Kafka that do what this broker does.
HANDLERS = (
    "PlainServerCallbackHandler",
    "ScramServerCallbackHandler",
    "OAuthBearerUnsecuredValidatorCallbackHandler",
    KEY_SET_HANDLER,
)

logger = logging.getLogger("broker.server")


class Offered:
    """What clients of one listener may authenticate with, and the limits of that. `mechanisms` makes the server side of each."""

    def __init__(self, config: BrokerConfig, listener: str, scram_users: Callable[[], ScramUsers]) -> None:
        """Raises ConfigError. `scram_users` is called at the first login with SCRAM."""
        self.frame_bytes = config.sasl_server_max_receive_size
        self.failure_delay_s = config.connection_failed_authentication_delay_ms / 1000
        self.mechanisms: Mapping[str, Callable[[], SaslServer]] = {}
        self._max_reauth_ms: dict[str, int] = {}
        names: Any = config.listener_value(listener, "sasl.enabled.mechanisms")
        for name in names:
            if name not in SUPPORTED:
                raise ConfigError(
                    f"sasl.enabled.mechanisms: listener {listener} offers {name}; this broker supports {', '.join(SUPPORTED)}"
                )
        if not names:
            raise ConfigError(f"sasl.enabled.mechanisms: listener {listener} offers no mechanism")
        settings = {name: _Settings(config, listener, name) for name in names}
        self.mechanisms = {name: found.server_maker(scram_users) for name, found in settings.items()}
        self._max_reauth_ms = {name: found.value("connections.max.reauth.ms") for name, found in settings.items()}

    def lifetime_ms(self, mechanism: str, identity: Identity) -> int | None:
        """How long a session lasts that begins now; None means forever."""
        limits = [self._max_reauth_ms[mechanism]] if self._max_reauth_ms[mechanism] > 0 else []
        if identity.expires_at_ms is not None:
            limits.append(max(identity.expires_at_ms - wall_ms(), 0))
        return min(limits, default=None)


class _Settings:
    """The options of one mechanism of a listener."""

    def __init__(self, config: BrokerConfig, listener: str, mechanism: str) -> None:
        self._config = config
        self._listener = listener
        self._mechanism = mechanism
        self._prefix = f"listener.name.{listener.lower()}.{mechanism.lower()}"

    def value(self, option: str) -> Any:
        return self._config.listener_value(self._listener, option, self._mechanism)

    def server_maker(self, scram_users: Callable[[], ScramUsers]) -> Callable[[], SaslServer]:
        handler = self._handler()
        if handler and not (handler.startswith("org.apache.kafka.") and handler.rpartition(".")[2] in HANDLERS):
            raise ConfigError(f"{self._prefix}.{HANDLER_OPTION}={handler}: this broker has no such class")
        try:
            if self._mechanism == "PLAIN":
                return self._plain()
            if self._mechanism == "OAUTHBEARER":
                return self._oauthbearer()
        except BadCredentials as error:
            raise ConfigError(f"{self._prefix}: {error}") from None
        return partial(_scram_server, self._mechanism, scram_users)

    def _handler(self) -> str:
        return str(self.value(HANDLER_OPTION) or "")

    def _login_module(self) -> jaas.LoginModule | None:
        option = f"{self._mechanism.lower()}.sasl.jaas.config"
        found: Any = self._config.of_listeners.get((self._listener, option))
        try:
            return jaas.parse(found) if found is not None else None
        except jaas.JaasError as error:
            raise ConfigError(f"{self._prefix}.sasl.jaas.config: {error}") from None

    def _plain(self) -> Callable[[], SaslServer]:
        from broker.security.credentials.plain_users import PlainUsers
        from broker.security.sasl import plain

        users = PlainUsers(self._login_module(), self.value("sasl.plain.users.file"))
        if not users:
            raise ConfigError(
                f"{self._prefix}.sasl.jaas.config: PLAIN needs users: set '{jaas.PLAIN} required "
                'user_NAME="PASSWORD";\', or sasl.plain.users.file'
            )
        return partial(plain.server, users.find)

    def _oauthbearer(self) -> Callable[[], SaslServer]:
        from broker.security.credentials.signed_tokens import Rules, signed
        from broker.security.credentials.unsecured_tokens import unsecured
        from broker.security.sasl import oauthbearer

        url = self.value("sasl.oauthbearer.jwks.endpoint.url")
        if url:
            rules = Rules(
                issuer=self.value("sasl.oauthbearer.expected.issuer"),
                audiences=self.value("sasl.oauthbearer.expected.audience"),
                skew_s=self.value("sasl.oauthbearer.clock.skew.seconds"),
                scope_claim=self.value("sasl.oauthbearer.scope.claim.name"),
                sub_claim=self.value("sasl.oauthbearer.sub.claim.name"),
            )
            return partial(oauthbearer.server, signed(_path_of(url), rules, wall_ms))
        if self._handler().rpartition(".")[2] == KEY_SET_HANDLER:
            raise ConfigError(
                "sasl.oauthbearer.jwks.endpoint.url: set it to the key set that verifies tokens, as file:///PATH"
            )
        logger.warning(
            "listener %s takes OAUTHBEARER tokens without a signature: anybody can be anybody. Use this for development "
            "only, or set sasl.oauthbearer.jwks.endpoint.url",
            self._listener,
        )
        return partial(oauthbearer.server, unsecured(self._login_module(), wall_ms))


def _scram_server(mechanism: str, scram_users: Callable[[], ScramUsers]) -> SaslServer:
    users = scram_users()
    nonce = b64encode(os.urandom(NONCE_BYTES)).decode()
    return scram.server(mechanism, partial(users.find, mechanism), nonce=nonce, secret=users.secret)


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ConfigError(
            f"sasl.oauthbearer.jwks.endpoint.url={url}: must be file:///PATH; the broker does not fetch key sets over the network"
        )
    return unquote(parts.path)
