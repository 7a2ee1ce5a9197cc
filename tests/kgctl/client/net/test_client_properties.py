"""Security properties as Java and librdkafka users have them."""

from __future__ import annotations

import pytest

from broker.security.secret import Secret
from kgctl.client.net.client_properties import KNOWN_NAMES, security_from
from kgctl.client.net.security import (
    PLAINTEXT,
    BadSecurity,
    ClientCredentials,
    MskIam,
    OwnCertificate,
    StaticToken,
    TokenCommand,
    TokenFile,
    Trust,
    UnsecuredToken,
)
from kgctl.exit_codes import USAGE, exit_code_of

JAAS = "org.apache.kafka.common.security"
SCRAM = f'{JAAS}.scram.ScramLoginModule required username="alice" password="alice-secret";'
OAUTH = f"{JAAS}.oauthbearer.OAuthBearerLoginModule required"


def refused(properties: dict[str, str]) -> str:
    with pytest.raises(BadSecurity) as refusal:
        security_from(properties)
    assert exit_code_of(refusal.value) == USAGE
    return str(refusal.value)


def sasl(**properties: str) -> dict[str, str]:
    """Properties of SASL_SSL, with underscores for dots."""
    return {"security.protocol": "SASL_SSL"} | {name.replace("_", "."): value for name, value in properties.items()}


def test_nothing_means_plaintext() -> None:
    assert security_from({}) is PLAINTEXT
    assert security_from({"acks": "all", "bootstrap.servers": "kafka:9092"}) is PLAINTEXT


def test_a_java_file_for_scram_over_tls() -> None:
    security = security_from(
        sasl(sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=SCRAM)
        | {"ssl.truststore.location": "/etc/ca.jks", "ssl.truststore.password": "changeit", "key.deserializer": "x"}
    )
    assert security.protocol == "SASL_SSL"
    assert security.sasl is not None
    assert (security.sasl.mechanism, security.sasl.username) == ("SCRAM-SHA-512", "alice")
    assert security.sasl.password == Secret("alice-secret")
    assert security.tls is not None
    assert security.tls.trust == Trust("/etc/ca.jks", Secret("changeit"))
    assert security.tls.verify_host_name
    assert security.warnings == []


def test_librdkafkas_names_mean_the_same() -> None:
    security = security_from(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
            "ssl.ca.location": "/etc/ssl/certs",
            "ssl.certificate.location": "alice.pem",
            "ssl.key.location": "alice.key",
            "ssl.key.password": "key-secret",
        }
    )
    assert security.sasl is not None
    assert (security.sasl.mechanism, security.sasl.password) == ("PLAIN", Secret("alice-secret"))
    assert security.tls is not None
    assert security.tls.trust == Trust("/etc/ssl/certs")
    assert security.tls.own == OwnCertificate(
        chain_file="alice.pem", key_file="alice.key", key_password=Secret("key-secret")
    )


def test_no_repr_shows_a_secret() -> None:
    secrets = {
        "ssl.truststore.password": "hidden-1",
        "ssl.keystore.location": "alice.p12",
        "ssl.keystore.password": "hidden-2",
        "ssl.key.password": "hidden-3",
        "sasl.jaas.config": SCRAM.replace("alice-secret", "hidden-4"),
    }
    assert "hidden" not in repr(security_from(sasl(sasl_mechanism="SCRAM-SHA-256") | secrets))
    tokens = {"sasl.oauthbearer.token": "hidden-5"}
    assert "hidden" not in repr(security_from(sasl(sasl_mechanism="OAUTHBEARER") | tokens))
    flow = {
        "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        "sasl.jaas.config": f'{OAUTH} clientId="me" clientSecret="hidden-6";',
    }
    assert "hidden" not in repr(security_from(sasl(sasl_mechanism="OAUTHBEARER") | flow))


def test_an_empty_algorithm_turns_host_names_off_with_a_warning() -> None:
    security = security_from({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
    assert security.tls is not None
    assert not security.tls.verify_host_name
    assert "host names are not verified" in security.warnings[0]


def test_inline_pem_of_kip_651() -> None:
    security = security_from(
        {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.keystore.key": "KEY",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "CA",
        }
    )
    assert security.tls is not None
    assert security.tls.own == OwnCertificate(chain="CHAIN", key=Secret("KEY"))
    assert security.tls.trust == Trust(certificates="CA")


def test_versions_and_ciphers() -> None:
    security = security_from(
        {
            "security.protocol": "SSL",
            "ssl.enabled.protocols": "TLSv1.2,TLSv1.1",
            "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA,"
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    )
    assert security.tls is not None
    assert security.tls.versions == ("TLSv1.2",)
    assert security.tls.ciphers == ("ECDHE-RSA-AES128-GCM-SHA256", "AES256-SHA", "ECDHE-ECDSA-CHACHA20-POLY1305")


@pytest.mark.parametrize(
    ("properties", "source"),
    [
        ({"sasl.oauthbearer.token": "t"}, StaticToken(Secret("t"))),
        ({"sasl.oauthbearer.token.command": "gcloud token"}, TokenCommand("gcloud token")),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///run/a%20token"}, TokenFile("/run/a token")),
        ({"sasl.jaas.config": f'{OAUTH} unsecuredLoginStringClaim_sub="alice";'}, UnsecuredToken({"sub": "alice"})),
        ({"sasl.oauthbearer.config": "principal=alice"}, UnsecuredToken({"sub": "alice"})),
        (
            {
                "sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
                "sasl.jaas.config": f'{OAUTH} awsProfileName="ops";',
            },
            MskIam(profile="ops"),
        ),
    ],
)
def test_a_token_has_a_source(properties: dict[str, str], source: object) -> None:
    security = security_from(sasl(sasl_mechanism="OAUTHBEARER") | properties)
    assert security.sasl is not None
    assert security.sasl.token == source


def test_client_credentials_in_a_java_file() -> None:
    security = security_from(
        sasl(sasl_mechanism="OAUTHBEARER")
        | {
            "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
            "sasl.login.callback.handler.class": f"{JAAS}.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
            "sasl.login.connect.timeout.ms": "2500",
            "sasl.jaas.config": f'{OAUTH} clientId="me" clientSecret="mine" scope="kafka" '
            'extension_logicalCluster="lkc-1" ssl.truststore.location="/etc/idp.pem";',
        }
    )
    assert security.sasl is not None
    assert security.sasl.extensions == {"logicalCluster": "lkc-1"}
    flow = security.sasl.token
    assert isinstance(flow, ClientCredentials)
    assert (flow.client_id, flow.client_secret, flow.scope) == ("me", Secret("mine"), "kafka")
    assert (flow.connect_timeout, flow.tls.trust) == (2.5, Trust("/etc/idp.pem"))


def test_a_java_file_for_msk_iam() -> None:
    security = security_from(
        sasl(sasl_mechanism="AWS_MSK_IAM")
        | {
            "sasl.jaas.config": 'software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/r";',
            "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        }
    )
    assert security.sasl is not None
    assert security.sasl.mechanism == "OAUTHBEARER"
    assert security.sasl.token == MskIam(role_arn="arn:aws:iam::1:role/r")


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is not one of PLAINTEXT, SSL"),
        ({"ssl.trustore.location": "x"}, "unknown property; did you mean ssl.truststore.location?"),
        ({"sasl.kerberos.service.name": "kafka"} | sasl(sasl_mechanism="GSSAPI"), "does not support GSSAPI"),
        (sasl(), "sasl.mechanism: it is missing; choose one of PLAIN"),
        (sasl(sasl_mechanism="PLAIN"), "sasl.username is missing"),
        (sasl(sasl_mechanism="PLAIN", sasl_jaas_config=SCRAM), "does not fit PLAIN; it needs PlainLoginModule"),
        (sasl(sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=SCRAM[:-1]), "does not end with a semicolon"),
        (sasl(sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=SCRAM, sasl_username="bob"), "not both"),
        (sasl(sasl_mechanism="OAUTHBEARER"), "OAUTHBEARER needs a token"),
        (
            sasl(sasl_mechanism="OAUTHBEARER") | {"sasl.oauthbearer.token.endpoint.url": "ftp://x"},
            "not an https or file URL",
        ),
        (
            sasl(sasl_mechanism="OAUTHBEARER") | {"sasl.login.callback.handler.class": "com.example.Mine"},
            "cannot run the Java class",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.type": "BCFKS"}, "'BCFKS' is not one of PEM, PKCS12, JKS"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, "supports TLSv1.2 and TLSv1.3"),
        ({"security.protocol": "SSL", "ssl.certificate.location": "c.pem"}, "ssl.key.location: it is missing"),
        ({"security.protocol": "SSL", "ssl.ca.location": "a", "ssl.truststore.location": "b"}, "keep one of them"),
    ],
)
def test_a_property_that_cannot_be_used_is_named(properties: dict[str, str], reason: str) -> None:
    text = refused(properties)
    assert reason in text
    assert "alice-secret" not in text


def test_every_security_property_of_javas_client_is_known() -> None:
    # AdminClientConfig of Kafka 4.1; the names of Kerberos and of the refresh thread are ignored by prefix.
    java = [
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "ssl.provider",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "ssl.keymanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
    ]
    assert [name for name in java if name not in KNOWN_NAMES] == []
