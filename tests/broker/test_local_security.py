"""`--secure`: the certificate, the administrator and the client configuration that a broker makes for itself."""

from __future__ import annotations

import datetime
import logging
import shutil
import ssl
import stat
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from cryptography import x509

from broker.config.config import BrokerConfig, load_config
from broker.config.option import ConfigError
from broker.config.properties import parse_properties
from broker.local import LocalBroker
from broker.security import development
from broker.server.local_security import LocalSecurity
from tests.harness.broker_program import refused, started
from tests.harness.ports import kept_address

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def librdkafka(kafka: LocalBroker, password: str | None = None) -> dict[str, str]:
    """What librdkafka calls the properties of a client."""
    found = {"bootstrap.servers": kafka.bootstrap_servers, "socket.timeout.ms": "5000"}
    found["security.protocol"] = kafka.client_properties["security.protocol"]
    if kafka.username is not None:
        found |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": kafka.username}
        found["sasl.password"] = password or str(kafka.password)
    if kafka.ca_file is not None:
        found["ssl.ca.location"] = str(kafka.ca_file)
    return found


def topics(configuration: dict[str, str], timeout_s: float = 5) -> set[str]:
    admin = AdminClient(configuration | {"log_level": "0"})
    return set(admin.list_topics(timeout=timeout_s).topics)


def test_a_client_needs_the_authority_and_the_password_of_the_broker() -> None:
    with LocalBroker(security="SASL_SSL", listen=kept_address()) as kafka:
        assert "__consumer_offsets" in topics(librdkafka(kafka))
        with pytest.raises(KafkaException):
            topics(librdkafka(kafka, password="wrong"), timeout_s=0.5)
        text = kafka.log_file.read_text()
        assert str(kafka.password) not in text
        before = kafka.password, kafka.ca_file.read_bytes() if kafka.ca_file else b""
        kafka.restart()
        assert (kafka.password, kafka.ca_file.read_bytes() if kafka.ca_file else b"") == before
        assert "__consumer_offsets" in topics(librdkafka(kafka))
        assert kafka.client_properties["bootstrap.servers"] == kafka.bootstrap_servers
        assert f'password="{kafka.password}"' in kafka.client_properties["sasl.jaas.config"]


def test_a_broker_may_use_sasl_without_tls() -> None:
    with LocalBroker(security="SASL_PLAINTEXT") as kafka:
        assert kafka.ca_file is None
        assert "__consumer_offsets" in topics(librdkafka(kafka))


def test_a_broker_may_use_tls_without_sasl() -> None:
    with LocalBroker(security="SSL") as kafka:
        assert (kafka.username, kafka.password) == (None, None)
        assert "__consumer_offsets" in topics(librdkafka(kafka))


def test_a_password_in_the_configuration_does_not_appear_in_the_arguments_of_the_process() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="back\\\\slash hunter2";'
    config = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas}
    with LocalBroker(config, security="SASL_PLAINTEXT") as kafka:
        assert "hunter2" not in Path(f"/proc/{kafka.pid}/cmdline").read_text()
        bob = {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": "back\\slash hunter2"}
        topics(librdkafka(kafka) | bob)


def config_of(security: LocalSecurity, **options: str) -> BrokerConfig:
    overrides = {name.replace("_", "."): value for name, value in options.items()}
    return load_config(overrides=overrides, defaults=security.options())


def certificate(security: LocalSecurity) -> x509.Certificate:
    return x509.load_pem_x509_certificate((security.directory / "ca.pem").read_bytes())


def names(security: LocalSecurity) -> set[str]:
    found = x509.load_pem_x509_certificates((security.directory / "server.pem").read_bytes())[0]
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in extension}


def test_the_files_are_private_and_stay_as_they_are(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path, "SASL_SSL")
    security.prepare(config_of(security))
    content = {path: path.read_bytes() for path in security.directory.iterdir()}
    assert {path.name for path in content} == {"authority.pem", "ca.pem", "server.pem"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in content} == {0o600}
    security.prepare(config_of(security))
    assert {path: path.read_bytes() for path in security.directory.iterdir()} == content
    assert b"PRIVATE KEY" not in content[security.directory / "ca.pem"]


def test_the_certificate_is_for_every_name_by_which_clients_reach_the_broker(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path, "SASL_SSL")
    security.prepare(config_of(security))
    assert {"localhost", "127.0.0.1", "::1"} <= names(security)
    security.prepare(
        config_of(
            security,
            listeners="SASL_SSL://0.0.0.0:9093,LAN://192.0.2.7:9094",
            listener_security_protocol_map="SASL_SSL:SASL_SSL,LAN:SASL_SSL",
            advertised_listeners="SASL_SSL://kafka.example:9093",
        )
    )
    assert {"localhost", "kafka.example", "192.0.2.7"} <= names(security)
    assert "0.0.0.0" not in names(security)


@pytest.mark.parametrize("content", [b"", b"nonsense", "old", "foreign"])
def test_a_certificate_that_does_not_serve_is_renewed_with_the_same_authority(
    tmp_path: Path, content: bytes | str
) -> None:
    security = LocalSecurity(tmp_path, "SASL_SSL")
    security.prepare(config_of(security))
    authority = certificate(security)
    issuer = (security.directory / "authority.pem").read_bytes()
    others = {
        "old": development.make_server(issuer, ["localhost"], NOW - 340 * DAY),
        "foreign": development.make_server(development.make_authority(NOW), ["localhost"], NOW),
    }
    (security.directory / "server.pem").write_bytes(others[content] if isinstance(content, str) else content)
    security.prepare(config_of(security))
    assert certificate(security) == authority
    served = x509.load_pem_x509_certificates((security.directory / "server.pem").read_bytes())[0]
    served.verify_directly_issued_by(authority)
    assert served.not_valid_after_utc > NOW + 360 * DAY
    # OpenSSL accepts the chain, and the key belongs to it.
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(security.directory / "server.pem")


def test_an_authority_is_replaced_only_before_it_expires(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    security = LocalSecurity(tmp_path, "SASL_SSL")
    security.directory.mkdir()
    (security.directory / "authority.pem").write_bytes(development.make_authority(NOW - 3640 * DAY))
    security.prepare(config_of(security))
    assert certificate(security).not_valid_after_utc > NOW + 3000 * DAY
    assert "clients need the new ca.pem" in caplog.text
    caplog.clear()
    # The file for clients may be lost: it is a copy.
    before = certificate(security)
    (security.directory / "ca.pem").unlink()
    security.prepare(config_of(security))
    assert certificate(security) == before
    assert caplog.text == ""


def test_a_configuration_without_the_secured_listener_is_refused(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path, "SASL_SSL")
    with pytest.raises(ConfigError, match="no listener has the protocol SASL_SSL"):
        security.prepare(config_of(security, listeners="PLAINTEXT://127.0.0.1:0"))


def test_the_password_of_the_administrator_is_made_once_and_can_be_reset(tmp_path: Path) -> None:
    path = tmp_path / "security" / "admin-password"
    passwords = []
    for lost in (False, False, True):
        if lost:
            path.unlink()
        with started(tmp_path, "--secure") as program:
            ready = program.ready()
            assert ready.security_protocol == "SASL_SSL"
            passwords.append(path.read_text().strip())
            found = parse_properties(Path(str(ready.client_properties)).read_text())
            assert passwords[-1] in found["sasl.jaas.config"]
            configuration = {
                "bootstrap.servers": ready.address,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": found["ssl.truststore.location"],
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "admin",
                "sasl.password": passwords[-1],
            }
            assert "__consumer_offsets" in topics(configuration)
    assert passwords[0] == passwords[1] != passwords[2]


def test_a_secured_listener_may_be_reached_from_other_machines(tmp_path: Path) -> None:
    with started(tmp_path / "a", "--secure", listen="0.0.0.0:0") as program:
        assert program.ready().listeners[0].security_protocol == "SASL_SSL"
    code, line = refused(tmp_path / "b", "--secure", "SASL_PLAINTEXT", listen="0.0.0.0:0")
    assert code == 2
    assert "connections are not encrypted" in line


def test_a_key_store_that_does_not_open_is_one_line_and_the_code_of_a_wrong_configuration(tmp_path: Path) -> None:
    issuer = development.make_authority(NOW)
    (tmp_path / "server.pem").write_bytes(issuer)
    options = ["ssl.keystore.type=PEM", f"ssl.keystore.location={tmp_path / 'absent.pem'}"]
    arguments = [word for option in options for word in ("--override", option)]
    code, line = refused(tmp_path / "d", *arguments, listen="SSL://127.0.0.1:0")
    assert code == 2
    assert line == f"Error: listener SSL: {tmp_path / 'absent.pem'}: No such file or directory"
    assert not (tmp_path / "d").exists()


def test_a_start_without_the_protection_of_an_earlier_start_warns(tmp_path: Path) -> None:
    def log_of(*arguments: str) -> str:
        with started(data, *arguments) as program:
            return Path(program.ready().log_file).read_text()

    data = tmp_path / "data"
    allowed = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:bob",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    with LocalBroker(security="SASL_SSL", data_dir=data) as kafka:
        admin = AdminClient(librdkafka(kafka))
        (done,) = admin.create_acls([allowed]).values()
        done.result(5)
    assert "an earlier start was with --secure, this one is not: every client may do everything" in log_of()
    shutil.rmtree(data / "security")
    assert "the ACLs are not in force, because authorizer.class.name is not set" in log_of()
    (data / "broker.log").unlink()
    assert "every client" not in log_of("--override", "authorizer.class.name=StandardAuthorizer")
