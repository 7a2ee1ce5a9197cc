"""A certificate authority for tests, and certificates of it: good, expired, for another name. Elliptic curve keys, made in milliseconds."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOCAL_NAMES = ("localhost", "127.0.0.1")
ORGANIZATION = "kgctl tests"
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate and its key, as the files that clients and brokers read."""

    certificate: Path  # the chain as PEM
    key: Path  # PKCS #8 as PEM, encrypted if `password` is given
    bundle: Path  # both in one file, as a PEM key store of Kafka
    pkcs12: Path
    password: str | None
    subject: str  # as Kafka names the principal of a client certificate
    not_after: datetime.datetime

    @property
    def store_password(self) -> str:
        """Of the PKCS12 file."""
        return self.password or "store-secret"


class Authority:
    """A CA with its files in one directory."""

    def __init__(self, directory: Path, name: str = "kgctl test CA") -> None:
        self.directory, self.name = directory, name
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        now = _now()
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + 365 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file = directory / "ca.pem"
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self.trust_store = directory / "ca.p12"  # of the type PKCS12; its password is `trust_store_password`
        self.trust_store_password = "trust-secret"
        self.trust_store.write_bytes(
            pkcs12.serialize_java_truststore(
                [pkcs12.PKCS12Certificate(self._certificate, b"ca")],
                serialization.BestAvailableEncryption(self.trust_store_password.encode()),
            )
        )

    def server(
        self,
        stem: str = "server",
        *,
        names: Sequence[str] = LOCAL_NAMES,
        password: str | None = None,
        expired: bool = False,
    ) -> Issued:
        """A certificate of a broker that is reached by these host names and addresses."""
        return self._issue(stem, names, ExtendedKeyUsageOID.SERVER_AUTH, expired, password)

    def client(self, name: str, *, password: str | None = None, expired: bool = False) -> Issued:
        """A certificate of a user; `password` encrypts the key."""
        return self._issue(name, (), ExtendedKeyUsageOID.CLIENT_AUTH, expired, password)

    def _issue(
        self, stem: str, names: Sequence[str], purpose: x509.ObjectIdentifier, expired: bool, password: str | None
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        now = _now()
        start, end = (now - 10 * DAY, now - DAY) if expired else (now - DAY, now + 60 * DAY)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(stem))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general_name, names))), False)
        certificate = builder.sign(self._key, hashes.SHA256())
        chain = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in (certificate, self._certificate))
        protection = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        key_pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        issued = Issued(
            self.directory / f"{stem}.pem",
            self.directory / f"{stem}.key",
            self.directory / f"{stem}-bundle.pem",
            self.directory / f"{stem}.p12",
            password,
            f"CN={stem},O={ORGANIZATION}",
            end,
        )
        issued.certificate.write_bytes(chain)
        issued.key.write_bytes(key_pem)
        issued.bundle.write_bytes(key_pem + chain)
        issued.pkcs12.write_bytes(
            pkcs12.serialize_key_and_certificates(
                stem.encode(),
                key,
                certificate,
                [self._certificate],
                serialization.BestAvailableEncryption(issued.store_password.encode()),
            )
        )
        return issued


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
