"""Names of cipher suites: IANA's, as Java has them, to OpenSSL's. Pure."""

from __future__ import annotations

from collections.abc import Iterable

# OpenSSL has the same names for the suites of TLS 1.3, and Python offers no way to choose among them.
TLS_1_3 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))
_KEY_EXCHANGES = {"RSA": "", "ECDHE_RSA": "ECDHE-RSA-", "ECDHE_ECDSA": "ECDHE-ECDSA-", "DHE_RSA": "DHE-RSA-"}
_CIPHERS = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}


class UnknownSuite(ValueError):
    """A name that is not that of a suite of TLS 1.2 or 1.3."""


def openssl_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The suites of TLS 1.2 by OpenSSL's names, and those of TLS 1.3. Raises UnknownSuite."""
    old, new = [], []
    for name in names:
        if name in TLS_1_3:
            new.append(name)
            continue
        exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
        if not name.startswith("TLS_") or exchange not in _KEY_EXCHANGES or cipher not in _CIPHERS:
            raise UnknownSuite(f"{name!r} is not known, or too weak")
        old.append(_KEY_EXCHANGES[exchange] + _CIPHERS[cipher])
    return old, new
