"""Tokens whose signature a JSON web key set verifies (RFC 7517, RFC 7518)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.light_named_tuples import NamedTuple
from broker.security.credentials import jwt
from broker.security.credentials.errors import BadCredentials
from broker.security.credentials.watched_file import WatchedFile
from broker.security.sasl.mechanism import Identity
from broker.security.sasl.oauthbearer import TokenRefused, Validate
from broker.security.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

# Elliptic curves by their name in a key set, with the algorithm that goes with each.
_CURVES = {"P-256": ("SECP256R1", "ES256"), "P-384": ("SECP384R1", "ES384"), "P-521": ("SECP521R1", "ES512")}
_HASHES = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}
_RSA = tuple(f"{scheme}{bits}" for scheme in ("RS", "PS") for bits in _HASHES)
# Smaller RSA keys are not accepted, as in Kafka (RFC 7518 section 3.3).
MIN_RSA_BITS = 2048


class Rules(NamedTuple):
    """What a token must claim. `audiences` and `issuer` are those of Kafka's options; None means not set."""

    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    skew_s: int = 30
    scope_claim: str = "scope"
    sub_claim: str = "sub"


class Key(NamedTuple):
    """A public key: the algorithms that it may be used with, and a function that verifies (algorithm, signature, data)."""

    key_id: str | None
    algorithms: tuple[str, ...]
    verify: Callable[[str, bytes, bytes], None]


def signed(key_set_file: str, rules: Rules, now_ms: Callable[[], int]) -> Validate:
    """A validator that reads the key set again when the file changes. Raises BadCredentials."""
    try:
        import cryptography.exceptions
    except ImportError:
        raise BadCredentials("signed tokens need another package: pip install 'kgctl[security]'") from None
    keys = WatchedFile(key_set_file, parse_keys)

    def validate(secret: Secret) -> Identity:
        token = jwt.read(secret)
        for key in _keys_for(token, keys.content()):
            try:
                key.verify(token.header["alg"], token.signature, token.signed)
            except (cryptography.exceptions.InvalidSignature, ValueError):
                continue
            return _identity(token, rules, now_ms())
        raise TokenRefused("no key of the key set verifies the signature")

    return validate


def parse_keys(text: str) -> list[Key]:
    """The keys of a key set that can verify signatures. Raises ValueError."""
    try:
        found = json.loads(text)["keys"]
        keys = [_key(each) for each in found if each.get("use", "sig") == "sig"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, TokenRefused) as error:
        raise ValueError(f"not a JSON web key set: {error}") from None
    usable = [key for key in keys if key is not None]
    if not usable:
        raise ValueError("the JSON web key set has no RSA, EC or Ed25519 key for signatures")
    return usable


def _keys_for(token: jwt.Token, keys: list[Key]) -> list[Key]:
    algorithm, key_id = token.header.get("alg"), token.header.get("kid")
    if token.header.get("crit") is not None:
        raise TokenRefused("the token has critical headers that are not supported")
    fitting = [key for key in keys if algorithm in key.algorithms and (key_id is None or key.key_id in (None, key_id))]
    if not fitting:
        raise TokenRefused(f"the key set has no key for kid {str(key_id)[:100]!r} and alg {str(algorithm)[:20]!r}")
    return fitting


def _identity(token: jwt.Token, rules: Rules, now_ms: int) -> Identity:
    now, skew = now_ms / 1000, rules.skew_s
    expires, issued, not_before = token.seconds("exp"), token.seconds("iat"), token.seconds("nbf")
    if expires is None or issued is None:
        raise TokenRefused("the token lacks the claim exp or iat")
    if expires + skew <= now:
        raise TokenRefused("the token has expired")
    if issued - skew > now or (not_before is not None and not_before - skew > now):
        raise TokenRefused("the token is not valid yet")
    if rules.issuer is not None and token.claims.get("iss") != rules.issuer:
        raise TokenRefused(f"the issuer of the token is not sasl.oauthbearer.expected.issuer={rules.issuer}")
    audiences = token.claims.get("aud")
    named = {audiences} if isinstance(audiences, str) else set(token.words("aud"))
    if (named or rules.audiences) and not named & set(rules.audiences):
        # As in Kafka: a token for an audience is not for a broker that does not know who it is.
        raise TokenRefused("the audience of the token is not in sasl.oauthbearer.expected.audience")
    token.words(rules.scope_claim)
    name = token.claims.get(rules.sub_claim)
    if not isinstance(name, str) or not name.strip():
        raise TokenRefused(f"the claim {rules.sub_claim} does not name a principal")
    return Identity(name.strip(), int(expires * 1000))


def _key(found: Mapping[str, Any]) -> Key | None:
    match found["kty"]:
        case "RSA":
            algorithms, verify = _rsa(found)
        case "EC":
            algorithms, verify = _elliptic(found)
        case "OKP" if found.get("crv") == "Ed25519":
            algorithms, verify = _edwards(found)
        case _:
            return None
    given = found.get("alg")
    return Key(found.get("kid"), tuple(each for each in algorithms if given in (None, each)), verify)


Verifier = Callable[[str, bytes, bytes], None]


def _rsa(found: Mapping[str, Any]) -> tuple[tuple[str, ...], Verifier]:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key: RSAPublicKey = rsa.RSAPublicNumbers(_number(found["e"]), _number(found["n"])).public_key()
    if key.key_size < MIN_RSA_BITS:
        raise ValueError(f"an RSA key has {key.key_size} bits, at least {MIN_RSA_BITS} are needed")

    def verify(algorithm: str, signature: bytes, data: bytes) -> None:
        digest = getattr(hashes, _HASHES[algorithm[2:]])()
        pad = (
            padding.PKCS1v15() if algorithm.startswith("RS") else padding.PSS(padding.MGF1(digest), digest.digest_size)
        )
        key.verify(signature, data, pad, digest)

    return _RSA, verify


def _elliptic(found: Mapping[str, Any]) -> tuple[tuple[str, ...], Verifier]:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    name, algorithm = _CURVES[found["crv"]]
    curve = getattr(ec, name)()
    key: EllipticCurvePublicKey = ec.EllipticCurvePublicNumbers(
        _number(found["x"]), _number(found["y"]), curve
    ).public_key()
    size = (curve.key_size + 7) // 8

    def verify(algorithm: str, signature: bytes, data: bytes) -> None:
        if len(signature) != 2 * size:
            raise ValueError("the signature has a wrong length")
        pair = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
        key.verify(encode_dss_signature(*pair), data, ec.ECDSA(getattr(hashes, _HASHES[algorithm[2:]])()))

    return (algorithm,), verify


def _edwards(found: Mapping[str, Any]) -> tuple[tuple[str, ...], Verifier]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(jwt.decode(found["x"]))
    return ("EdDSA",), lambda algorithm, signature, data: key.verify(signature, data)


def _number(text: str) -> int:
    return int.from_bytes(jwt.decode(text), "big")
