"""Tokens without a signature, for development: the claims are checked, but anybody can write them (KIP-255)."""

from __future__ import annotations

from collections.abc import Callable

from broker.security.credentials import jwt
from broker.security.credentials.errors import BadCredentials
from broker.security.jaas import OAUTHBEARER, LoginModule
from broker.security.sasl.mechanism import Identity
from broker.security.sasl.oauthbearer import TokenRefused, Validate
from broker.security.secret import Secret

_PREFIX = "unsecuredValidator"


def unsecured(module: LoginModule | None, now_ms: Callable[[], int]) -> Validate:
    """A validator with the options of Kafka's OAuthBearerUnsecuredValidatorCallbackHandler. Raises BadCredentials."""
    if module is not None and module.name != OAUTHBEARER:
        raise BadCredentials(f"OAUTHBEARER needs {OAUTHBEARER}, not {module.name}")

    def option(name: str, default: str) -> str:
        return (module.option(_PREFIX + name) if module is not None else None) or default

    principal, scope = option("PrincipalClaimName", "sub"), option("ScopeClaimName", "scope")
    required = option("RequiredScope", "").split()
    skew = option("AllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdigit()):
        raise BadCredentials(f"{_PREFIX}AllowableClockSkewMs is not a whole number")

    def validate(secret: Secret) -> Identity:
        token = jwt.read(secret)
        if token.header.get("alg") != "none" or token.signature:
            raise TokenRefused("the token is signed, and this listener takes unsecured tokens only")
        name = token.claims.get(principal)
        if not isinstance(name, str) or not name.strip():
            raise TokenRefused(f"the claim {principal} does not name a principal")
        issued, expires, now = token.seconds("iat"), token.seconds("exp"), now_ms()
        if expires is None:
            raise TokenRefused("the token has no expiration time")
        if issued is not None and int(issued * 1000) > now + int(skew):
            raise TokenRefused("the token was issued in the future")
        if expires * 1000 + int(skew) <= now:
            raise TokenRefused("the token has expired")
        if issued is not None and expires <= issued:
            raise TokenRefused("the token expires before it was issued")
        if not set(required) <= set(token.words(scope)):
            raise TokenRefused("the token lacks a scope", status="insufficient_scope", scope=" ".join(required))
        return Identity(name, int(expires * 1000))

    return validate
