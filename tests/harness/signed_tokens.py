"""JSON web tokens with good and bad signatures and claims: our broker and a real Kafka must agree on which are valid."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
SHA256 = hashes.SHA256()


def base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def part(content: Mapping[str, Any]) -> str:
    return base64(json.dumps(content).encode())


def number(value: int) -> str:
    return base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer:
    """Two keys in the key set, and one that is not."""

    def __init__(self) -> None:
        self._rsa = rsa.generate_private_key(65537, 2048)
        self._ec = ec.generate_private_key(ec.SECP256R1())
        self._other = rsa.generate_private_key(65537, 2048)

    @property
    def key_set(self) -> str:
        first, second = self._rsa.public_key().public_numbers(), self._ec.public_key().public_numbers()
        return json.dumps(
            {
                "keys": [
                    {"kty": "RSA", "kid": "r", "use": "sig", "n": number(first.n), "e": number(first.e)},
                    {"kty": "EC", "kid": "e", "crv": "P-256", "x": number(second.x), "y": number(second.y)},
                ]
            }
        )

    def token(self, header: Mapping[str, Any] | None = None, *, signer: str = "r", **claims: Any) -> str:
        """A token that is valid for an hour; a claim that is None is left out."""
        now = time.time()
        stated = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now - 1, "exp": now + 3600, **claims}
        algorithm = {"r": "RS256", "p": "PS256", "e": "ES256", "other": "RS256", "": "none", "h": "HS256"}[signer]
        key_id = {"e": "e"}.get(signer, "r")
        headers = {"alg": algorithm, "kid": key_id, **(header or {})}
        body = {name: value for name, value in stated.items() if value is not None}
        signed = f"{part({k: v for k, v in headers.items() if v is not None})}.{part(body)}"
        return f"{signed}.{base64(self._signature(signer, signed.encode()))}"

    def _signature(self, signer: str, data: bytes) -> bytes:
        if signer == "":
            return b""
        if signer == "e":
            r, s = decode_dss_signature(self._ec.sign(data, ec.ECDSA(SHA256)))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        if signer == "p":
            return self._rsa.sign(data, padding.PSS(padding.MGF1(SHA256), SHA256.digest_size), SHA256)
        if signer == "h":
            # The classic attack: the public key as the secret of a symmetric algorithm.
            mac = hmac.HMAC(number(self._rsa.public_key().public_numbers().n).encode(), SHA256)
            mac.update(data)
            return mac.finalize()
        key = self._other if signer == "other" else self._rsa
        return key.sign(data, padding.PKCS1v15(), SHA256)


def cut(token: str) -> str:
    return token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")


# Name, how to make it, and whether it is valid for a broker with ISSUER, AUDIENCE and a clock skew of 30 s.
CASES: list[tuple[str, Callable[[Issuer], str], bool]] = [
    ("RS256", lambda issuer: issuer.token(), True),
    ("PS256", lambda issuer: issuer.token(signer="p"), True),
    ("ES256", lambda issuer: issuer.token(signer="e"), True),
    ("several audiences", lambda issuer: issuer.token(aud=["other", AUDIENCE]), True),
    ("a scope", lambda issuer: issuer.token(scope="read write"), True),
    ("scopes", lambda issuer: issuer.token(scope=["read", "write"]), True),
    ("expired within the skew", lambda issuer: issuer.token(exp=time.time() - 5, iat=time.time() - 60), True),
    ("issued ahead within the skew", lambda issuer: issuer.token(iat=time.time() + 5), True),
    ("unknown claims", lambda issuer: issuer.token(more={"a": [1]}), True),
    ("not signed", lambda issuer: issuer.token(signer=""), False),
    ("signed with the public key", lambda issuer: issuer.token(signer="h"), False),
    ("another key", lambda issuer: issuer.token(signer="other"), False),
    ("unknown key id", lambda issuer: issuer.token({"kid": "x"}), False),
    ("key of another kind", lambda issuer: issuer.token({"kid": "e"}), False),
    ("another algorithm", lambda issuer: issuer.token({"alg": "RS512"}), False),
    ("no algorithm", lambda issuer: issuer.token({"alg": None}), False),
    ("changed signature", lambda issuer: cut(issuer.token()), False),
    ("changed claims", lambda issuer: issuer.token().replace(".", "." + part({"sub": "bob"}) + "x", 1), False),
    ("no signature", lambda issuer: issuer.token().rpartition(".")[0] + ".", False),
    ("two parts", lambda issuer: issuer.token().rpartition(".")[0], False),
    ("critical header", lambda issuer: issuer.token({"crit": ["x"], "x": 1}), False),
    ("expired", lambda issuer: issuer.token(exp=time.time() - 60, iat=time.time() - 120), False),
    ("no expiration", lambda issuer: issuer.token(exp=None), False),
    ("expiration is a text", lambda issuer: issuer.token(exp="tomorrow"), False),
    ("no time of issue", lambda issuer: issuer.token(iat=None), False),
    ("not yet valid", lambda issuer: issuer.token(nbf=time.time() + 600), False),
    ("another issuer", lambda issuer: issuer.token(iss="https://other.example"), False),
    ("no issuer", lambda issuer: issuer.token(iss=None), False),
    ("another audience", lambda issuer: issuer.token(aud="other"), False),
    ("no audience", lambda issuer: issuer.token(aud=None), False),
    ("no subject", lambda issuer: issuer.token(sub=None), False),
    ("an empty subject", lambda issuer: issuer.token(sub=" "), False),
    ("subject is a number", lambda issuer: issuer.token(sub=5), False),
]
