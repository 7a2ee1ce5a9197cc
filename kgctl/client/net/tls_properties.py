"""The properties `ssl.*` as a `Tls`."""

from __future__ import annotations

from broker.security.keystores import TYPES
from kgctl.client.net.property_values import Values
from kgctl.client.net.security import TLS_VERSIONS, BadSecurity, OwnCertificate, Tls, Trust

HOST_NAMES = "ssl.endpoint.identification.algorithm"
_USED = (
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    HOST_NAMES,
)
# How Java finds its implementations.
_JAVA_ONLY = (
    "ssl.protocol",
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
)
TLS_NAMES = (*_USED, *_JAVA_ONLY)
_OLD_VERSIONS = ("SSLV2", "SSLV2HELLO", "SSLV3", "TLSV1", "TLSV1.1")


def tls_from(values: Values) -> Tls:
    """What the properties say about TLS. Files are read when a connection needs them. Raises BadSecurity."""
    for name in ("ssl.truststore.type", "ssl.keystore.type"):
        if values.text(name) and values.text(name).upper() not in TYPES:
            raise BadSecurity(f"{name}: {values.text(name)!r} is not one of {', '.join(TYPES)}")
    algorithm = values.text(HOST_NAMES, "https").lower()
    if algorithm not in ("https", "", "none"):
        raise BadSecurity(f"{HOST_NAMES}: {algorithm!r} is unknown; https verifies host names, an empty value does not")
    return Tls(
        _trust(values),
        _own_certificate(values),
        verify_host_name=algorithm == "https",
        verify_certificate=values.flag("enable.ssl.certificate.verification", True),
        versions=_versions(values),
        ciphers=tuple(map(_cipher, values.items("ssl.cipher.suites"))),
    )


def _trust(values: Values) -> Trust:
    chosen = _one_of(values, "ssl.truststore.location", "ssl.truststore.certificates", "ssl.ca.location", "ssl.ca.pem")
    if chosen in ("ssl.truststore.certificates", "ssl.ca.pem"):
        return Trust(certificates=values.text(chosen))
    return Trust(values.text(chosen) if chosen else None, values.secret("ssl.truststore.password"))


def _own_certificate(values: Values) -> OwnCertificate | None:
    password = values.secret("ssl.key.password")
    chosen = _one_of(
        values,
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.certificate.location",
        "ssl.certificate.pem",
    )
    if chosen == "ssl.keystore.location":
        return OwnCertificate(values.text(chosen), values.secret("ssl.keystore.password"), key_password=password)
    key_name = {
        "ssl.certificate.location": "ssl.key.location",
        "ssl.certificate.pem": "ssl.key.pem",
        "ssl.keystore.certificate.chain": "ssl.keystore.key",
    }
    for given, needed in key_name.items():
        if (given == chosen) != bool(values.text(needed)):
            missing = needed if given == chosen else given
            raise BadSecurity(f"{missing}: it is missing; a client certificate needs {given} and {needed}")
    if chosen == "ssl.certificate.location":
        return OwnCertificate(
            chain_file=values.text(chosen), key_file=values.text("ssl.key.location"), key_password=password
        )
    if chosen is None:
        return None
    return OwnCertificate(chain=values.text(chosen), key=values.secret(key_name[chosen]), key_password=password)


def _one_of(values: Values, *names: str) -> str | None:
    given = [name for name in names if values.text(name)]
    if len(given) > 1:
        raise BadSecurity(f"{given[1]}: {given[0]} is given too; keep one of them")
    return given[0] if given else None


def _versions(values: Values) -> tuple[str, ...]:
    given = values.items("ssl.enabled.protocols")
    unknown = [name for name in given if name.upper() not in (*_OLD_VERSIONS, *map(str.upper, TLS_VERSIONS))]
    if unknown:
        raise BadSecurity(f"ssl.enabled.protocols: {unknown[0]!r} is unknown; choose from {', '.join(TLS_VERSIONS)}")
    kept = tuple(name for name in TLS_VERSIONS if name.upper() in map(str.upper, given))
    if given and not kept:
        raise BadSecurity(f"ssl.enabled.protocols: kgctl supports {' and '.join(TLS_VERSIONS)}")
    return kept or TLS_VERSIONS


def _cipher(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2 that has its name from Java, which is IANA's."""
    if "_WITH_" not in name:
        return name
    exchange, cipher = name.removeprefix("TLS_").split("_WITH_", 1)
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    cipher = cipher.removesuffix("_SHA256") if cipher.startswith("CHACHA20") else cipher
    return "-".join([*([] if exchange == "RSA" else exchange.split("_")), *cipher.split("_")])
