"""Certificates for a broker on a laptop or in CI: an authority of its own, and a server certificate that it issues."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS, SERVER_DAYS = 3650, 365
# A certificate with less time left is renewed.
RENEW_DAYS = 30
AUTHORITY_NAME = "kgctl local authority"
_SKEW = datetime.timedelta(hours=1)


class NoCryptography(Exception):
    """The package that makes certificates is not installed."""

    def __init__(self) -> None:
        super().__init__("making certificates needs the package cryptography: pip install 'kgctl[security]'")


def make_authority(now: datetime.datetime) -> bytes:
    """The key and the certificate of a new authority, as PEM. Raises NoCryptography."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise NoCryptography from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(AUTHORITY_NAME)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(key, certificate)


def make_server(authority: bytes, names: Iterable[str], now: datetime.datetime) -> bytes:
    """The key and the certificate chain of a server that is reached by these host names and addresses, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer_key, issuer = _load(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder(issuer.subject, _name("kgctl broker"), key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(min(now + datetime.timedelta(days=SERVER_DAYS), issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(map(_alternative, names))), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(key, certificate, issuer)


def certificate_of(authority: bytes) -> bytes:
    """The certificate of an authority, without its key, as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return _load(authority)[1].public_bytes(Encoding.PEM)


def is_usable_authority(pem: bytes, now: datetime.datetime) -> bool:
    """Whether the file of an authority is intact and valid for some time."""
    try:
        key, certificate = _load(pem)
    except (ImportError, ValueError, IndexError):
        return False
    return bool(key.public_key() == certificate.public_key()) and _lasts(certificate, now)


def is_usable_server(pem: bytes, authority: bytes, names: Iterable[str], now: datetime.datetime) -> bool:
    """Whether a server's certificate is of this authority, is for these names and is valid for some time."""
    from cryptography import x509

    try:
        key, certificate = _load(pem)
        certificate.verify_directly_issued_by(_load(authority)[1])
        known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001  whatever is wrong with the file: a new certificate is right
        return False
    wanted = set(map(_alternative, names))
    return key.public_key() == certificate.public_key() and wanted <= set(known) and _lasts(certificate, now)


def _lasts(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    left = certificate.not_valid_after_utc - now
    return certificate.not_valid_before_utc <= now and left > datetime.timedelta(days=RENEW_DAYS)


def _load(pem: bytes) -> tuple[EllipticCurvePrivateKey, x509.Certificate]:
    """The key and the first certificate of a PEM file. Raises ValueError and IndexError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("not a key of an elliptic curve")
    return key, x509.load_pem_x509_certificates(pem)[0]


def _pem(key: EllipticCurvePrivateKey, *certificates: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    return b"".join([*parts, *(each.public_bytes(Encoding.PEM) for each in certificates)])


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
