"""The properties `sasl.oauthbearer.*`, and the options of a login module, as a source of tokens."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import replace
from broker.security.secret import Secret
from kgctl.client.net.property_values import Values
from kgctl.client.net.security import (
    BadSecurity,
    ClientCredentials,
    MskIam,
    StaticToken,
    TokenCommand,
    TokenFile,
    TokenSource,
    UnsecuredToken,
)
from kgctl.client.net.tls_properties import TLS_NAMES, tls_from

IAM_MODULE = "IAMLoginModule"
URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
TOKEN, COMMAND = "sasl.oauthbearer.token", "sasl.oauthbearer.token.command"
_HANDLER = "sasl.login.callback.handler.class"
_KAFKA_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
_MSK_HANDLER = "IAMOAuthBearerLoginCallbackHandler"
_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_USED = (
    TOKEN,  # these two are kgctl's own
    COMMAND,
    URL,
    CLIENT_ID,
    CLIENT_SECRET,
    "sasl.oauthbearer.client.id",  # librdkafka's
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
)
# They say how to check a token, which is up to the broker.
_CHECKS = (
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
)
_ASSERTION = tuple(
    f"sasl.oauthbearer.assertion.{name}"
    for name in (
        "algorithm",
        "claim.aud",
        "claim.exp.seconds",
        "claim.iss",
        "claim.jti.include",
        "claim.nbf.seconds",
        "claim.sub",
        "file",
        "private.key.file",
        "private.key.passphrase",
        "template.file",
    )
)
OAUTH_NAMES = (*_USED, *_CHECKS, *_ASSERTION)
Options = Mapping[str, Secret]


def token_source(values: Values, options: Options) -> tuple[TokenSource, Mapping[str, str]]:
    """Where tokens come from, and the SASL extensions to send with them. Raises BadSecurity."""
    extensions = {
        name.removeprefix("extension_"): value.reveal()
        for name, value in options.items()
        if name.startswith("extension_")
    }
    for item in values.items("sasl.oauthbearer.extensions"):
        name, _, value = item.partition("=")
        extensions[name] = value
    return _source(values, options), extensions


def msk_iam(options: Options) -> MskIam:
    """The options of Amazon's login module."""
    texts = {name: value.reveal() for name, value in options.items()}
    return MskIam(
        texts.get("awsRegion") or texts.get("awsStsRegion"),
        texts.get("awsProfileName"),
        texts.get("awsRoleArn"),
        texts.get("awsRoleSessionName"),
    )


def _source(values: Values, options: Options) -> TokenSource:
    handler = values.text(_HANDLER).rsplit(".", 1)[-1]
    if handler == _MSK_HANDLER:
        return msk_iam(options)
    if token := values.secret(TOKEN):
        return StaticToken(token)
    if command := values.text(COMMAND):
        return TokenCommand(command)
    retriever = values.text("sasl.oauthbearer.jwt.retriever.class")
    if handler and handler not in _KAFKA_HANDLERS:
        raise BadSecurity(
            f"{_HANDLER}: kgctl cannot run the Java class {values.text(_HANDLER)}; {COMMAND} can replace it"
        )
    if retriever and retriever.rsplit(".", 1)[-1] not in _RETRIEVERS:
        raise BadSecurity(
            f"sasl.oauthbearer.jwt.retriever.class: kgctl does not support {retriever}; {COMMAND} can replace it"
        )
    if url := values.text(URL):
        return _from_url(url, values, options)
    claims = _unsecured_claims(options) | _librdkafka_claims(values)
    if "sub" in claims:
        lifetime = options.get("unsecuredLoginLifetimeSeconds")
        return UnsecuredToken(claims, _number(lifetime.reveal()) if lifetime else 3600.0)
    raise BadSecurity(f"sasl.mechanism: OAUTHBEARER needs a token: give {URL}, {TOKEN} or {COMMAND}")


def _from_url(url: str, values: Values, options: Options) -> TokenSource:
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "file":
        from urllib.parse import unquote, urlsplit

        return TokenFile(unquote(urlsplit(url).path))
    if scheme.lower() not in ("https", "http") or not rest.startswith("//"):
        raise BadSecurity(f"{URL}: {url!r} is not an https or file URL")
    client_id = values.text(CLIENT_ID) or values.text("sasl.oauthbearer.client.id") or _text(options, "clientId")
    client_secret = (
        values.secret(CLIENT_SECRET) or values.secret("sasl.oauthbearer.client.secret") or options.get("clientSecret")
    )
    if not client_id or client_secret is None:
        raise BadSecurity(f"{CLIENT_SECRET if client_id else CLIENT_ID}: it is missing; {URL} needs it")
    # As in Java, TLS to the endpoint has its own properties, among the options of the login module.
    tls = tls_from(Values({name: value for name, value in options.items() if name in TLS_NAMES}))
    made = ClientCredentials(
        url,
        client_id,
        client_secret,
        values.text("sasl.oauthbearer.scope") or _text(options, "scope") or None,
        tls,
        values.flag("sasl.oauthbearer.header.urlencode", False),
        values.seconds("sasl.login.connect.timeout.ms", None),
        values.seconds("sasl.login.read.timeout.ms", None),
    )
    backoff = values.seconds("sasl.login.retry.backoff.ms", made.retry_backoff)
    most = values.seconds("sasl.login.retry.backoff.max.ms", made.retry_backoff_max)
    assert backoff is not None
    assert most is not None
    return replace(made, retry_backoff=backoff, retry_backoff_max=most)


def _unsecured_claims(options: Options) -> dict[str, object]:
    """The claims of OAuthBearerUnsecuredLoginCallbackHandler."""
    claims: dict[str, object] = {}
    for name, value in options.items():
        kind, _, claim = name.partition("Claim_")
        if kind == "unsecuredLoginString":
            claims[claim] = value.reveal()
        elif kind == "unsecuredLoginNumber":
            claims[claim] = _number(value.reveal())
        elif kind == "unsecuredLoginList" and value:
            # The first character separates the items.
            claims[claim] = value.reveal()[1:].split(value.reveal()[0])
    return claims


def _librdkafka_claims(values: Values) -> dict[str, object]:
    """librdkafka's `principal=alice scope=...` for unsecured tokens."""
    pairs = dict(item.partition("=")[::2] for item in values.text("sasl.oauthbearer.config").split())
    names = {"principal": "sub", "scope": "scope"}
    return {names[name]: value for name, value in pairs.items() if name in names}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadSecurity("sasl.jaas.config: a number of an unsecured token is not a number") from None


def _text(options: Options, name: str) -> str:
    return options[name].reveal() if name in options else ""
