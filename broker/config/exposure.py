"""Which listeners other machines can reach without authentication or encryption."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.config.listeners import NamedAddress

OAUTHBEARER = "OAUTHBEARER"


def why_insecure(config: BrokerConfig) -> str | None:
    """Why the broker should not listen on these addresses without consent; None if nothing speaks against it."""
    for address in config.listen:
        weakness = _weakness(address, config)
        if weakness is not None and not address.endpoint.is_loopback():
            return f"{address.endpoint} is reachable from other machines, and {weakness}"
    return None


def _weakness(address: NamedAddress, config: BrokerConfig) -> str | None:
    if not address.uses_tls:
        if address.uses_sasl:
            # PLAIN sends the password, and an authenticated connection of any mechanism can be taken over.
            return "connections are not encrypted: others can read passwords and take over connections"
        return "connections are neither encrypted nor authenticated"
    if config.client_auth(address) == "required":
        return None
    if not address.uses_sasl:
        return "clients are not authenticated (ssl.client.auth=required demands certificates)"
    if _takes_unsigned_tokens(address, config):
        return "it takes OAUTHBEARER tokens without a signature (set sasl.oauthbearer.jwks.endpoint.url)"
    return None


def _takes_unsigned_tokens(address: NamedAddress, config: BrokerConfig) -> bool:
    mechanisms = config.listener_value(address.name, "sasl.enabled.mechanisms")
    if not isinstance(mechanisms, tuple) or OAUTHBEARER not in mechanisms:
        return False
    return not config.listener_value(address.name, "sasl.oauthbearer.jwks.endpoint.url", OAUTHBEARER)
