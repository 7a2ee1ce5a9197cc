"""The security properties of a Java client, and librdkafka's where Java has no name, as a `Security`.

Names that begin with `ssl.` or `sasl.` and are unknown are errors; names of other parts of a client are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.security.jaas import JaasError, LoginModule, parse
from broker.security.secret import Secret
from kgctl.client.net.oauth_properties import IAM_MODULE, OAUTH_NAMES, msk_iam, token_source
from kgctl.client.net.property_values import Values
from kgctl.client.net.security import PLAINTEXT, PROTOCOLS, BadSecurity, Sasl, Security
from kgctl.client.net.tls_properties import TLS_NAMES, tls_from

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM")
# By the last part of the class name: vendors move Kafka's classes into packages of their own.
_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "AWS_MSK_IAM": IAM_MODULE,
}
_CLIENT_HANDLERS = ("IAMClientCallbackHandler", "OAuthBearerSaslClientCallbackHandler")
_SASL_NAMES = (
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
)
# They concern Kerberos, or Java's way to log in.
_IGNORED = ("sasl.kerberos.", "sasl.login.refresh.", "sasl.login.class")
KNOWN_NAMES = ("security.protocol", "enable.ssl.certificate.verification", *_SASL_NAMES, *OAUTH_NAMES, *TLS_NAMES)


def security_from(properties: Mapping[str, str | Secret]) -> Security:
    """How these properties secure connections. Raises BadSecurity, which names the property."""
    values = Values(properties)
    _check_names(properties)
    protocol = values.text("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise BadSecurity(f"security.protocol: {protocol!r} is not one of {', '.join(PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    tls = tls_from(values) if protocol.endswith("SSL") else None
    return Security(protocol, tls, _sasl(values) if protocol.startswith("SASL") else None)


def _check_names(properties: Mapping[str, object]) -> None:
    for name in properties:
        if name.startswith(("ssl.", "sasl.")) and name not in KNOWN_NAMES and not name.startswith(_IGNORED):
            from difflib import get_close_matches

            close = get_close_matches(name, KNOWN_NAMES, 1)
            raise BadSecurity(f"{name}: unknown property" + (f"; did you mean {close[0]}?" if close else ""))


def _sasl(values: Values) -> Sasl:
    mechanism = (values.text("sasl.mechanism") or values.text("sasl.mechanisms")).upper()
    module = _login_module(values)
    if mechanism == "GSSAPI" or (not mechanism and module is not None and module.name.endswith("Krb5LoginModule")):
        raise BadSecurity(
            "sasl.mechanism: kgctl does not support GSSAPI (Kerberos); use a listener with SCRAM or OAUTHBEARER"
        )
    if mechanism not in MECHANISMS:
        problem = f"{mechanism!r} is not supported" if mechanism else "it is missing"
        raise BadSecurity(f"sasl.mechanism: {problem}; choose one of {', '.join(MECHANISMS)}")
    if module is not None and module.name.rsplit(".", 1)[-1] != _MODULES[mechanism]:
        raise BadSecurity(f"sasl.jaas.config: {module.name} does not fit {mechanism}; it needs {_MODULES[mechanism]}")
    handler = values.text("sasl.client.callback.handler.class")
    if handler and handler.rsplit(".", 1)[-1] not in _CLIENT_HANDLERS:
        raise BadSecurity(f"sasl.client.callback.handler.class: kgctl cannot run the Java class {handler}")
    options = module.options if module else {}
    if mechanism == "AWS_MSK_IAM":
        # MSK takes OAUTHBEARER on the same port, with a token that the same credentials sign.
        return Sasl("OAUTHBEARER", token=msk_iam(options))
    if mechanism == "OAUTHBEARER":
        source, extensions = token_source(values, options)
        return Sasl(mechanism, token=source, extensions=extensions)
    return _with_password(mechanism, values, module)


def _with_password(mechanism: str, values: Values, module: LoginModule | None) -> Sasl:
    if module is None:
        username, password = values.text("sasl.username"), values.secret("sasl.password")
        missing = "sasl.username" if not username else "sasl.password" if password is None else None
        where = f"{mechanism} needs sasl.username and sasl.password, or sasl.jaas.config"
    else:
        if values.text("sasl.username") or values.secret("sasl.password"):
            raise BadSecurity(
                "sasl.jaas.config: give the credentials there or as sasl.username and sasl.password, not both"
            )
        if (module.option("tokenauth") or "").lower() == "true":
            raise BadSecurity("sasl.jaas.config: kgctl does not support delegation tokens (tokenauth)")
        username, password = module.option("username") or "", module.options.get("password")
        missing = (
            "sasl.jaas.config: username" if not username else "sasl.jaas.config: password" if password is None else None
        )
        where = f"{mechanism} needs it"
    if missing or password is None:
        raise BadSecurity(f"{missing} is missing; {where}")
    return Sasl(mechanism, username, password)


def _login_module(values: Values) -> LoginModule | None:
    text = values.secret("sasl.jaas.config")
    if not text:
        return None
    try:
        return parse(text)
    except JaasError as error:
        raise BadSecurity(f"sasl.jaas.config: {error}") from None
