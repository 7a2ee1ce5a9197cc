"""The options of SASL: Kafka's names, types and defaults. Most can be set for one listener, some for one mechanism of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.option import integer, long, password, text, words
from broker.light_dataclasses import dataclass

if TYPE_CHECKING:
    from broker.security.secret import Secret


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SaslOptions:
    """One field per option, as in Options."""

    sasl_enabled_mechanisms: tuple[str, ...] = words(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "The mechanisms that clients may choose: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.",
        per_listener=True,
    )
    sasl_jaas_config: Secret | None = password(
        "sasl.jaas.config",
        "The login module of a mechanism; set it as listener.name.<name>.<mechanism>.sasl.jaas.config. "
        'For PLAIN, user_NAME="PASSWORD" adds a user.',
        per_mechanism=True,
    )
    sasl_plain_users_file: str | None = text(
        "sasl.plain.users.file",
        None,
        "A file of NAME=PASSWORD lines with users for PLAIN, read again when it changes. Kafka has no such option.",
        per_listener=True,
    )
    sasl_server_max_receive_size: int = integer(
        "sasl.server.max.receive.size",
        524288,
        "The largest request in bytes before a client has authenticated.",
        least=1,
    )
    sasl_server_callback_handler_class: str | None = text(
        "sasl.server.callback.handler.class",
        None,
        "The class that validates credentials, one of Kafka's; with OAuthBearerValidatorCallbackHandler a key set is required.",
        per_listener=True,
        per_mechanism=True,
    )
    connections_max_reauth_ms: int = long(
        "connections.max.reauth.ms",
        0,
        "The time after which a client must authenticate again; 0 sets no limit.",
        per_listener=True,
        per_mechanism=True,
    )
    connection_failed_authentication_delay_ms: int = integer(
        "connection.failed.authentication.delay.ms",
        100,
        "How long the broker waits before it answers a failed authentication and closes the connection.",
        least=0,
        most=10000,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = text(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "The JSON web key set that verifies tokens, as file:///PATH; without it, tokens need no signature.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_expected_issuer: str | None = text(
        "sasl.oauthbearer.expected.issuer",
        None,
        "The issuer that a token must have.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = words(
        "sasl.oauthbearer.expected.audience",
        (),
        "The audiences of which a token must have one.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "By how much the clocks of issuer and broker may differ.",
        least=0,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_scope_claim_name: str = text(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "The claim with the scopes of a token.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_sub_claim_name: str = text(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "The claim with the name of the principal.",
        per_listener=True,
        per_mechanism=True,
    )
