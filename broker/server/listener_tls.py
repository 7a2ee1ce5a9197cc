"""ListenerTls: what the TLS listeners of a configuration need: context, principal mapping, and turns for handshakes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.config.option import ConfigError
from broker.security import tls
from broker.security.certificates import expiry_of
from broker.security.cipher_suites import TLS_1_3
from broker.security.principals import BadRule, NoPrincipal, PrincipalMapper
from broker.server.handshake_turns import HandshakeTurns
from broker.server.tls_transport import TlsTransport

if TYPE_CHECKING:
    import asyncio
    import socket

    from broker.config.config import BrokerConfig
    from broker.config.listeners import NamedAddress
    from broker.server.tls_transport import SecuredProtocol

# A certificate that ends sooner is worth a warning at the start.
EXPIRY_WARNING_S = 30 * 86400

logger = logging.getLogger("broker.server")


class ListenerTls:
    """The TLS side of one listener."""

    def __init__(self, config: BrokerConfig, address: NamedAddress) -> None:
        """Reads the key store and the trust store. Raises ConfigError."""
        option = partial(config.listener_value, address.name)
        options = tls.Tls(
            key_store=_store("keystore", option),
            trust_store=_store("truststore", option),
            client_auth=config.client_auth(address),
            protocols=_tuple(option("ssl.enabled.protocols")),
            cipher_suites=_tuple(option("ssl.cipher.suites")),
        )
        try:
            self.context, certificate = tls.served(options)
            self._principals = PrincipalMapper(str(option("ssl.principal.mapping.rules")))
        except tls.BadTls as error:
            raise ConfigError(f"listener {address.name}: {error}") from None
        except BadRule as error:
            raise ConfigError(f"listener {address.name}: ssl.principal.mapping.rules: {error}") from None
        _warn_of_expiry(address.name, certificate)
        chosen = TLS_1_3.intersection(options.cipher_suites)
        if chosen and chosen != TLS_1_3:
            logger.warning("ssl.cipher.suites: every suite of TLS 1.3 is allowed, as Python cannot choose among them")

    def connector(
        self, make: Callable[[], SecuredProtocol], loop: asyncio.AbstractEventLoop
    ) -> Callable[[socket.socket], Coroutine[Any, Any, object]]:
        """Makes connections, each served by the protocol that `make` returns, of accepted sockets."""
        turns = HandshakeTurns(loop)

        async def connect(client: socket.socket) -> object:
            return TlsTransport(loop, client, self.context, make(), turns)

        return connect

    def check(self, certificate: bytes) -> None:
        """Check that a client's certificate is still valid, as that of a resumed session may not be. Raises NoPrincipal."""
        expiry = expiry_of(certificate)
        if expiry < _utc():
            raise NoPrincipal(f"the client's certificate expired on {expiry} UTC")

    def principal(self, certificate: bytes | None) -> str:
        """The principal of a client with this certificate. Raises NoRuleApplies."""
        return self._principals.principal(certificate)


def listener_tls(config: BrokerConfig) -> dict[str, ListenerTls]:
    """The TLS side of each listener that uses TLS, by name. Raises ConfigError."""
    return {address.name: ListenerTls(config, address) for address in config.listen if address.uses_tls}


def _warn_of_expiry(listener: str, certificate: bytes) -> None:
    expiry = expiry_of(certificate)
    if expiry < _utc():
        logger.warning("listener %s: its certificate expired on %s UTC; clients will refuse it", listener, expiry)
    elif expiry < _utc(EXPIRY_WARNING_S):
        logger.warning("listener %s: its certificate expires on %s UTC", listener, expiry)


def _utc(later_s: int = 0) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + later_s))


def _store(kind: str, option: Any) -> tls.Store:
    is_key_store = kind == "keystore"
    return tls.Store(
        kind=kind,
        type=option(f"ssl.{kind}.type"),
        location=option(f"ssl.{kind}.location"),
        password=option(f"ssl.{kind}.password"),
        certificates=option("ssl.keystore.certificate.chain" if is_key_store else "ssl.truststore.certificates"),
        key=option("ssl.keystore.key") if is_key_store else None,
        key_password=option("ssl.key.password") if is_key_store else None,
    )


def _tuple(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
