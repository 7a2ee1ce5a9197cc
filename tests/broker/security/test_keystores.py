"""Key stores and trust stores of every format, intact and broken."""

from __future__ import annotations

import base64
import ssl
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from broker.security import jks, pem
from broker.security.keystores import (
    BadStore,
    Identity,
    identity_from_pem,
    read_identity,
    read_trusted,
    trusted_from_pem,
    use_identity,
)
from broker.security.secret import Secret
from tests.harness.certificates import Authority

# keytool -genkeypair -storetype JKS -storepass storepass -keypass keypass1 -alias alice -keyalg EC -dname "CN=alice,O=kgctl tests"
KEY_STORE = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAQAFYWxpY2UAAAGiBB/vVQAAAH8wfTAOBgorBgEEASoCEQEBBQAEazOcGLJzTp5I2AJeU/6ZMmlaqOn5"
    "WmwOjhdsf6BnVBuXiyRENP8sKH8i6vnigkZoQe0/0csMrtpgx8s97spqx1+WWNdFdIf44Mec6xih1aw2A0XlXIo/DIP27oEUl5rX"
    "p9bKwCjgrtFck3oDAAAAAQAFWC41MDkAAAFoMIIBZDCCAQugAwIBAgIISq+NQjDLY54wCgYIKoZIzj0EAwIwJjEUMBIGA1UEChML"
    "a2djdGwgdGVzdHMxDjAMBgNVBAMTBWFsaWNlMCAXDTI2MTEyMjE2Mzg1MVoYDzIxMjYxMDI5MTYzODUxWjAmMRQwEgYDVQQKEwtr"
    "Z2N0bCB0ZXN0czEOMAwGA1UEAxMFYWxpY2UwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQmvLJ7fP8NXe32Xvp3/4jtZ5C79J/4"
    "2DrvlPmuXThbkmhdzRiLiiEBW+KMFbbbjkv+ix1suToLG3FORAKRh2WLoyEwHzAdBgNVHQ4EFgQU4V9wibFUZpWjnR46Zpabqyvz"
    "ZjEwCgYIKoZIzj0EAwIDRwAwRAIgK4HP2gk226ZEckCJmCW59svsdXd76aKmjFV8Y8JnvJgCIBIg4EDaT7c1aJq/+76QEDR53Y3J"
    "5xppJeM5+umGjljYQVZTxTBKuZcbGpllBpsYPVsm+ig="
)
# keytool -importcert -storetype JKS -storepass trustpass -alias ca, of the certificate above
TRUST_STORE = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAgACY2EAAAGiBB/xuAAFWC41MDkAAAFoMIIBZDCCAQugAwIBAgIISq+NQjDLY54wCgYIKoZIzj0EAwIw"
    "JjEUMBIGA1UEChMLa2djdGwgdGVzdHMxDjAMBgNVBAMTBWFsaWNlMCAXDTI2MTEyMjE2Mzg1MVoYDzIxMjYxMDI5MTYzODUxWjAm"
    "MRQwEgYDVQQKEwtrZ2N0bCB0ZXN0czEOMAwGA1UEAxMFYWxpY2UwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQmvLJ7fP8NXe32"
    "Xvp3/4jtZ5C79J/42DrvlPmuXThbkmhdzRiLiiEBW+KMFbbbjkv+ix1suToLG3FORAKRh2WLoyEwHzAdBgNVHQ4EFgQU4V9wibFU"
    "ZpWjnR46ZpabqyvzZjEwCgYIKoZIzj0EAwIDRwAwRAIgK4HP2gk226ZEckCJmCW59svsdXd76aKmjFV8Y8JnvJgCIBIg4EDaT7c1"
    "aJq/+76QEDR53Y3J5xppJeM5+umGjljYkd3OTzcmdR5gGkzSu0h/X0wvc4U="
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def key_store(tmp_path: Path) -> str:
    path = tmp_path / "alice.jks"
    path.write_bytes(KEY_STORE)
    return str(path)


@pytest.fixture
def trust_store(tmp_path: Path) -> str:
    path = tmp_path / "ca.jks"
    path.write_bytes(TRUST_STORE)
    return str(path)


def works(identity: Identity) -> bool:
    use_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), identity, name="store")
    return True


def test_an_identity_of_each_format_can_be_presented(authority: Authority, key_store: str) -> None:
    plain, locked = authority.client("plain"), authority.client("locked", password="key-secret")
    assert works(read_identity(str(plain.bundle), None))
    assert works(read_identity(str(locked.bundle), None, Secret("key-secret")))
    assert works(read_identity(str(plain.pkcs12), Secret(plain.store_password)))
    assert works(read_identity(key_store, Secret("storepass"), Secret("keypass1")))


def test_every_format_of_trust_store_has_its_certificates(authority: Authority, trust_store: str) -> None:
    from_pem = read_trusted(str(authority.ca_file))
    assert from_pem == authority.ca_file.read_text()
    assert read_trusted(str(authority.trust_store), Secret(authority.trust_store_password)) == from_pem
    trusted = read_trusted(trust_store, Secret("trustpass"))
    assert ssl.PEM_cert_to_DER_cert(trusted) in KEY_STORE
    assert read_trusted(trust_store) == trusted  # Java needs no password to trust


def test_pem_may_stand_on_one_line(authority: Authority) -> None:
    one_line = " ".join(authority.ca_file.read_text().split("\n"))
    assert trusted_from_pem(one_line, name="ssl.truststore.certificates") == authority.ca_file.read_text()
    issued = authority.client("inline")
    chain, key = (" ".join(path.read_text().split()) for path in (issued.certificate, issued.key))
    assert works(identity_from_pem(chain, Secret(key), name="ssl.keystore"))


def test_a_wrong_password_is_named_as_the_reason(authority: Authority, key_store: str) -> None:
    locked = authority.client("locked", password="key-secret")
    with pytest.raises(BadStore, match=r"does not open the private key \(ssl.key.password\)"):
        works(read_identity(str(locked.bundle), None, Secret("wrong")))
    with pytest.raises(BadStore, match="is encrypted; its password is missing"):
        works(read_identity(str(locked.bundle), None))
    with pytest.raises(BadStore, match=r"\.p12: the password does not open the store"):
        read_identity(str(locked.pkcs12), Secret("wrong"))
    with pytest.raises(BadStore, match=r"\.jks: the password does not fit"):
        read_identity(key_store, Secret("wrong"))
    with pytest.raises(BadStore, match="does not open the private key 'alice'"):
        read_identity(key_store, Secret("storepass"), Secret("wrong"))


def test_a_file_that_is_no_store_is_named(authority: Authority, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with pytest.raises(BadStore, match=r"empty\.pem: it has no certificate"):
        read_trusted(str(empty))
    with pytest.raises(BadStore, match=r"ca\.pem: it has no private key"):
        read_identity(str(authority.ca_file), None)
    with pytest.raises(BadStore, match="missing: No such file"):
        read_trusted("missing")
    broken = tmp_path / "broken.p12"
    broken.write_bytes(authority.trust_store.read_bytes()[:-40])
    with pytest.raises(BadStore, match=r"broken\.p12: "):
        read_trusted(str(broken), Secret(authority.trust_store_password))


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    one, other = authority.client("one"), authority.client("other")
    identity = identity_from_pem(one.certificate.read_text(), Secret(other.key.read_text()), name="store")
    with pytest.raises(BadStore, match="does not belong to the certificate"):
        works(identity)


def test_pkcs12_without_its_library_says_what_to_install(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(BadStore, match=r"pip install 'kgctl\[security\]'"):
        read_trusted(str(authority.trust_store), Secret(authority.trust_store_password))


def test_an_identity_shows_no_key(authority: Authority) -> None:
    issued = authority.client("shown")
    identity = read_identity(str(issued.bundle), None)
    body = issued.key.read_text().splitlines()[1]
    assert body in identity.key.reveal()
    assert body not in repr(identity)


@given(st.data())
def test_a_damaged_jks_store_is_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(KEY_STORE) - 1))
    changed = KEY_STORE[:at] + bytes([data.draw(st.integers(0, 255))]) + KEY_STORE[at + 1 :]
    damaged = changed[: data.draw(st.integers(0, len(changed)))]
    try:
        for entry in jks.read(damaged, None).keys:
            jks.private_key(entry, "keypass1")
    except jks.BadJks:
        pass
    if damaged != KEY_STORE:
        with pytest.raises(jks.BadJks):
            jks.read(damaged, "storepass")


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_readers(data: bytes) -> None:
    for text in (data.decode("latin-1"), f"-----BEGIN CERTIFICATE-----{data!r}-----END CERTIFICATE-----"):
        try:
            pem.certificates(text)
            pem.private_key(text)
        except pem.BadPem:
            pass
    with pytest.raises(jks.BadJks):
        jks.read(jks.MAGIC + data, "password")


def test_the_first_certificate_of_a_chain_is_found_behind_text_and_headers(authority: Authority) -> None:
    chain = authority.server().certificate.read_text()
    first = x509.load_pem_x509_certificate(chain.encode()).public_bytes(serialization.Encoding.DER)
    assert chain.count("BEGIN CERTIFICATE") == 2
    begin = "-----BEGIN CERTIFICATE-----\n"
    assert pem.first_certificate("subject: CN=x\n" + chain.replace(begin, begin + "X-Note: a header\n\n", 1)) == first
