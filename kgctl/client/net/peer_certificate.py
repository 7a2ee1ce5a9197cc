"""The facts about a certificate for people, whether it has been verified or not."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from typing import Any

from broker.light_dataclasses import dataclass

_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """Times in seconds since 1970; `start` and `expiry` are the same as text."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    valid_from: float
    expires_at: float

    @property
    def start(self) -> str:
        return _day(self.valid_from)

    @property
    def expiry(self) -> str:
        return _day(self.expires_at)


def decode(der: bytes) -> PeerCertificate | None:
    """Read a certificate; None if the interpreter cannot.

    The ssl module decodes only certificates that it has verified, except in a function for its own tests, which takes a path.
    """
    reader: Any = getattr(getattr(ssl, "_ssl", None), "_test_decode_cert", None)
    if reader is None:
        return None
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(ssl.DER_cert_to_PEM_cert(der))
            file.flush()
            found = reader(file.name)
        names = tuple(value for kind, value in found.get("subjectAltName", ()) if kind in ("DNS", "IP Address"))
        return PeerCertificate(
            _distinguished(found["subject"]),
            _distinguished(found["issuer"]),
            names,
            ssl.cert_time_to_seconds(found["notBefore"]),
            ssl.cert_time_to_seconds(found["notAfter"]),
        )
    except (OSError, ValueError, KeyError):
        return None


def _distinguished(name: Any) -> str:
    parts = [f"{_SHORT.get(kind, kind)}={value}" for group in reversed(name) for kind, value in group]
    return ",".join(parts) or "no name"


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
