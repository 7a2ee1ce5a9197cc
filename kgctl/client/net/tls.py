"""TLS for connections: a context from properties, handshakes, and what failures mean. Imported only where TLS is used."""

from __future__ import annotations

import os
import re
import socket
import ssl
import time
from typing import Any

from broker.light_dataclasses import dataclass
from broker.security import keystores
from broker.security.secret import Secret
from kgctl.client.net.errors import KgctlError, TimedOut, TlsFailed, Unreachable
from kgctl.client.net.peer_certificate import PeerCertificate, decode
from kgctl.client.net.security import BadSecurity, OwnCertificate, Tls, Trust
from kgctl.client.net.steps import Endpoint

_DIAGNOSIS_SECONDS = 1.0
_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.\d+")
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# X509_V_ERR_*
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME = 10, 9, (62, 64)
_UNKNOWN_CA = (2, 18, 19, 20, 21, 27)
# Reasons of OpenSSL for bytes that are not TLS.
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
    "RECORD_TOO_SMALL",
)
_NO_COMMON_VERSION = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE")
_NO_CERTIFICATE = ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE")


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a TLS handshake has agreed on, and the certificate of the other side."""

    version: str
    cipher: str
    peer: PeerCertificate | None


class TlsClient:
    """Makes TLS connections as a `Tls` says. Raises BadSecurity if one of its files cannot be used."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self.context = client_context(tls)

    def wrap(self, plain: socket.socket, endpoint: Endpoint, deadline: float) -> ssl.SSLSocket:
        """Do the handshake on a connected socket, which belongs to the result. Raises TlsFailed, Unreachable, TimedOut."""
        try:
            plain.settimeout(_left(deadline))
            return self.context.wrap_socket(plain, server_hostname=_host_name(endpoint))
        except OSError as error:
            plain.close()
            raise self.explain(endpoint, error) from error
        except BaseException:
            plain.close()
            raise

    def handshake_of(self, secured: ssl.SSLSocket) -> Handshake:
        der = secured.getpeercert(binary_form=True)
        return Handshake(secured.version() or "", (secured.cipher() or ("",))[0], decode(der) if der else None)

    def explain(self, endpoint: Endpoint, error: OSError) -> KgctlError:
        """The failure in one sentence. A certificate that is not accepted is fetched again, to say what is wrong with it."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return TlsFailed(f"{endpoint}: {self._what_is_wrong(endpoint, error)}")
        if isinstance(error, TimeoutError):
            return Unreachable(f"{endpoint}: the TLS handshake did not finish in time")
        reason = getattr(error, "reason", None) or ""
        if isinstance(error, ssl.SSLEOFError | ConnectionResetError | BrokenPipeError) or reason.startswith(_NOT_TLS):
            return TlsFailed(
                f"{endpoint}: the listener does not speak TLS, or refuses it; "
                "for a listener without TLS set security.protocol=PLAINTEXT or SASL_PLAINTEXT"
            )
        return TlsFailed(f"{endpoint}: {self._why_refused(reason, error)}")

    def _why_refused(self, reason: str, error: OSError) -> str:
        if reason.startswith(_NO_COMMON_VERSION):
            return (
                f"the broker and kgctl have no TLS version in common; kgctl offers {' and '.join(self._tls.versions)}"
            )
        if reason in _NO_CERTIFICATE and self._tls.own is None:
            return "the broker requires a client certificate; name one with ssl.keystore.location"
        if "HANDSHAKE_FAILURE" in reason:
            return "the broker refused the TLS handshake: no cipher in common, or it requires a client certificate"
        if "ALERT" in reason:
            alert = reason.split("ALERT_", 1)[-1].lower().replace("_", " ")
            own = " of kgctl" if self._tls.own else ""
            return f"the broker refused the TLS handshake{own and ' and the certificate' + own}: {alert}"
        return f"TLS failed: {reason.lower().replace('_', ' ') or error.strerror or error}"

    def _what_is_wrong(self, endpoint: Endpoint, error: ssl.SSLCertVerificationError) -> str:
        chain = [decoded for der in shown_certificates(endpoint) if (decoded := decode(der))]
        leaf = chain[0] if chain else None
        subject = f"the certificate of {leaf.subject}" if leaf else "its certificate"
        if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
            late = error.verify_code == _EXPIRED
            now = time.time()
            bad = next((each for each in chain if (each.expires_at < now if late else each.valid_from > now)), leaf)
            if bad is None:
                return "its certificate has expired" if late else "its certificate is not valid yet"
            return f"the certificate of {bad.subject} " + (
                f"expired on {bad.expiry}; renew it" if late else f"is valid only from {bad.start}; check the clock"
            )
        if error.verify_code in _WRONG_NAME:
            names = f"it names {', '.join(leaf.names)}" if leaf and leaf.names else "it names no host"
            advice = "connect by a name that it has" if leaf and leaf.names else "it needs a subjectAltName"
            return f"{subject} is not for {endpoint.host!r}: {names}; {advice}"
        if error.verify_code in _UNKNOWN_CA:
            issuer = f"is issued by {chain[-1].issuer}, which is not trusted" if chain else "is issued by an unknown CA"
            return f"{subject} {issuer}; name the certificate of its CA with ssl.truststore.location"
        return f"{subject} is not accepted: {error.verify_message}"


def client_context(tls: Tls) -> ssl.SSLContext:
    """The context of a client. Raises BadSecurity if a store or a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS[tls.versions[0]]
    context.maximum_version = _VERSIONS[tls.versions[-1]]
    # As in Java, everything in a trust store is trusted, also a certificate that is not of a CA.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not (tls.verify_host_name and tls.verify_certificate):
        context.check_hostname = False
    if not tls.verify_certificate:
        context.verify_mode = ssl.CERT_NONE
    if tls.ciphers:
        try:
            context.set_ciphers(":".join(tls.ciphers))
        except ssl.SSLError:
            raise BadSecurity("ssl.cipher.suites: this OpenSSL has none of them for TLS 1.2") from None
    try:
        _trust(context, tls.trust)
        if tls.own is not None:
            keystores.use_identity(context, _identity(tls.own), name=_name_of(tls.own))
    except keystores.BadStore as error:
        raise BadSecurity(str(error)) from None
    return context


def _trust(context: ssl.SSLContext, trust: Trust) -> None:
    if trust.certificates is not None:
        found = keystores.trusted_from_pem(trust.certificates, name="ssl.truststore.certificates")
    elif trust.location is None:
        context.load_default_certs()
        return
    elif os.path.isdir(trust.location):
        names = sorted(os.listdir(trust.location))
        if any(map(_HASHED_NAME.fullmatch, names)):
            context.load_verify_locations(capath=trust.location)
            return
        found = _certificates_in(trust.location, names)
    else:
        found = keystores.read_trusted(trust.location, trust.password)
    try:
        context.load_verify_locations(cadata=found)
    except ssl.SSLError as error:
        where = trust.location or "ssl.truststore.certificates"
        raise keystores.BadStore(f"{where}: a certificate is damaged: {error.reason or error}") from None


def _certificates_in(directory: str, names: list[str]) -> str:
    """The certificates of the PEM files of a directory without the hashed names of OpenSSL."""
    found = []
    for name in names:
        path = os.path.join(directory, name)
        if os.path.isfile(path) and b"-----BEGIN CERTIFICATE-----" in keystores.read_file(path):
            found.append(keystores.read_trusted(path))
    if not found:
        raise keystores.BadStore(f"{directory}: no file in it has a certificate in PEM")
    return "".join(found)


def _identity(own: OwnCertificate) -> keystores.Identity:
    if own.store is not None:
        return keystores.read_identity(own.store, own.store_password, own.key_password)
    if own.chain_file is not None and own.key_file is not None:
        chain, key = (keystores.read_file(path).decode(errors="replace") for path in (own.chain_file, own.key_file))
        return keystores.identity_from_pem(chain, Secret(key), own.key_password, name=_name_of(own))
    assert own.chain is not None
    assert own.key is not None
    return keystores.identity_from_pem(own.chain, own.key, own.key_password, name=_name_of(own))


def _name_of(own: OwnCertificate) -> str:
    if own.chain_file is not None:
        return f"{own.chain_file} and {own.key_file}"
    return own.store or "ssl.keystore.certificate.chain and ssl.keystore.key"


def shown_certificates(endpoint: Endpoint, timeout: float = _DIAGNOSIS_SECONDS) -> list[bytes]:
    """The certificates that the other side shows, unverified, as DER; [] if it shows none in time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(endpoint, timeout) as plain,
            context.wrap_socket(plain, server_hostname=_host_name(endpoint)) as secured,
        ):
            return _unverified_chain(secured)
    except OSError:
        return []


def _unverified_chain(secured: ssl.SSLSocket) -> list[bytes]:
    found: Any = getattr(secured, "get_unverified_chain", None)
    if found is not None:  # from Python 3.13 on
        return list(found())
    leaf = secured.getpeercert(binary_form=True)
    try:
        return [each.public_bytes(2) for each in secured._sslobj.get_unverified_chain()]  # type: ignore[attr-defined]
    except AttributeError:
        return [leaf] if leaf else []


def _host_name(endpoint: Endpoint) -> str:
    return endpoint.host.rstrip(".")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimedOut("no time left")
    return left
