"""A real Kafka with TLS, SASL and ACLs: one listener per security protocol, and StandardAuthorizer.

    python -m tests.harness.secured_kafka start [-o key=value ...]   foreground; prints listeners and files as JSON
    python -m tests.harness.secured_kafka start --ready              prints READY for the bench; PLAINTEXT may do anything

Users exist in SCRAM (both hashes) and PLAIN with the same passwords. OAUTHBEARER takes unsecured tokens. `admin` is a
super user; the others may do what ACLs allow. Certificates of clients are requested, not required.
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.certificates import Authority, Issued
from tests.harness.ports import kept_address
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.wire_client import ConnectionClosed, WireClient

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ADMIN = "admin"
USERS = {ADMIN: "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
_MODULES = "org.apache.kafka.common.security"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class SecuredKafka(ReferenceKafka):
    """`addresses` has host:port of each security protocol; `authority` issues certificates that the broker trusts."""

    def __init__(self, config: Mapping[str, str] | None = None, *, users: Mapping[str, str] | None = None) -> None:
        self.users = USERS | dict(users or {})
        self.addresses = {protocol: kept_address() for protocol in PROTOCOLS}
        super().__init__()
        self.bootstrap_servers = self.addresses["SASL_SSL"]
        self.authority = Authority(self.data_dir / "certificates")
        self.server = self.authority.server()
        self._config = self._security() | dict(config or {})

    def listeners(self) -> dict[str, str]:
        return self.addresses

    def format_arguments(self) -> list[str]:
        return [
            argument
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for user, password in self.users.items()
            for argument in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]

    def readiness_client(self) -> WireClient:
        return self.client("SASL_PLAINTEXT", ADMIN)

    def address(self, protocol: str) -> tuple[str, int]:
        host, port = self.addresses[protocol].rsplit(":", 1)
        return host, int(port)

    def client(self, protocol: str, user: str | None = None, *, certificate: Issued | None = None) -> WireClient:
        """A connection, authenticated with SASL PLAIN where the protocol has SASL."""
        client = WireClient(self.address(protocol), timeout_s=5)
        try:
            if protocol.endswith("SSL"):
                client.socket = self.wrap(client.socket, certificate)
            if protocol.startswith("SASL"):
                assert user is not None, "SASL needs a user"
                authenticate_plain(client, user, self.users.get(user, ""))
        except BaseException:
            client.close()
            raise
        return client

    def properties(
        self, protocol: str, user: str | None = None, mechanism: str = "SCRAM-SHA-512", *, password: str | None = None
    ) -> dict[str, str]:
        """The security properties of a Java client."""
        made = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.ca_file)}
        if protocol.startswith("SASL") and user is not None:
            secret = self.users[user] if password is None else password
            made |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(mechanism, user, secret)}
        return made

    def properties_file(self, protocol: str, user: str | None = None, mechanism: str = "SCRAM-SHA-512") -> Path:
        """The same as a file for `--command-config`."""
        path = self.data_dir / f"{protocol}-{user}-{mechanism}.properties"
        text = "".join(f"{name}={value}\n" for name, value in self.properties(protocol, user, mechanism).items())
        path.write_text(text)
        return path

    def wrap(self, plain: socket.socket, certificate: Issued | None = None) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.authority.ca_file)
        if certificate is not None:
            context.load_cert_chain(certificate.certificate, certificate.key, certificate.password)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def _security(self) -> dict[str, str]:
        plain_users = " ".join(f'user_{user}="{password}"' for user, password in self.users.items())
        as_admin = f'username="{ADMIN}" password="{self.users[ADMIN]}"'
        plain = f"{_MODULES}.plain.PlainLoginModule required {as_admin} {plain_users};"
        made = {
            "listener.security.protocol.map": ",".join(
                [*(f"{name}:{name}" for name in PROTOCOLS), "CONTROLLER:SASL_PLAINTEXT"]
            ),
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": plain,
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMIN}",
            "ssl.client.auth": "requested",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server.bundle),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.ca_file),
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            made |= {
                f"listener.name.{listener}.plain.sasl.jaas.config": plain,
                f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
                f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
                f"listener.name.{listener}.oauthbearer.sasl.jaas.config": (
                    f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{ADMIN}";'
                ),
            }
        return made


def jaas(mechanism: str, user: str, password: str) -> str:
    """The value of `sasl.jaas.config` for a client."""
    if mechanism == "OAUTHBEARER":
        return f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{_MODULES}.{module} required username="{user}" password="{password}";'


def unsecured_token(subject: str, lifetime_s: float = 3600, **claims: object) -> str:
    """A JWT without a signature, as OAuthBearerUnsecuredLoginCallbackHandler makes it."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + lifetime_s, **claims})
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts), ""]
    )


def authenticate_plain(client: WireClient, user: str, password: str) -> None:
    """SASL PLAIN by SaslHandshake and SaslAuthenticate of version 0, written by hand. Raises ConnectionClosed if it is refused."""
    _exchange(client, 17, 1, len("PLAIN").to_bytes(2, "big") + b"PLAIN")
    token = f"\0{user}\0{password}".encode()
    answer = _exchange(client, 36, 0, len(token).to_bytes(4, "big") + token)
    if answer[:2] != b"\0\0":
        raise ConnectionClosed(f"SASL PLAIN is refused: {answer!r}")


def _exchange(client: WireClient, api_key: int, version: int, body: bytes) -> bytes:
    frame = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + (0).to_bytes(4, "big") + b"\xff\xff" + body
    client.send_bytes(len(frame).to_bytes(4, "big") + frame)
    return client.receive_frame()[4:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    start = parser.add_subparsers(required=True).add_parser("start")
    start.add_argument("-o", "--option", action="append", default=[], metavar="key=value")
    start.add_argument("--ready", action="store_true")
    options = parser.parse_args()
    config = dict(option.split("=", 1) for option in options.option)
    if options.ready:
        config.setdefault("super.users", f"User:{ADMIN};User:ANONYMOUS")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SecuredKafka(config) as kafka:
            if options.ready:
                file = kafka.properties_file("SASL_SSL", ADMIN)
                with file.open("a") as more:
                    more.write(f"bootstrap.servers={kafka.addresses['SASL_SSL']}\n")
                print(f"READY {kafka.addresses['PLAINTEXT']} {kafka.pid} {file}", flush=True)
                return kafka.wait()
            about = {
                "pid": kafka.pid,
                "addresses": kafka.addresses,
                "users": kafka.users,
                "ca_file": str(kafka.authority.ca_file),
                "data_dir": str(kafka.data_dir),
            }
            print(json.dumps(about), flush=True)
            return kafka.wait()
    except KeyboardInterrupt:
        return 0
    except Unavailable as reason:
        print(f"secured Kafka: not available here: {reason}", file=sys.stderr)
        return 69


if __name__ == "__main__":
    sys.exit(main())
