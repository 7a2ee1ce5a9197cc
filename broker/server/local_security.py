"""LocalSecurity: what `--secure` makes in the data directory, once: an authority, a server certificate, an administrator."""

from __future__ import annotations

import contextlib
import datetime
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from broker.atomic_file import replace_file
from broker.config.option import ConfigError
from broker.config.properties import format_properties
from broker.data_directory import ADMIN, CA_NAME, PASSWORD_NAME, SECURITY_NAME
from broker.security.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.config.config import BrokerConfig
    from broker.config.listeners import NamedAddress
    from broker.server.listener import Listener
    from broker.storage import Log

# The first one is that of client.properties.
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")
AUTHORITY, SERVER, CLIENT_PROPERTIES = "authority.pem", "server.pem", "client.properties"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

logger = logging.getLogger("broker.server")


class LocalSecurity:
    """The secured listener of a broker that was started with `--secure`, and the files that belong to it."""

    def __init__(self, data_dir: Path, protocol: str) -> None:
        self._protocol = protocol
        self.directory = data_dir / SECURITY_NAME

    @property
    def client_properties(self) -> Path:
        """The configuration of a Java client that connects as the administrator."""
        return self.directory / CLIENT_PROPERTIES

    def options(self) -> dict[str, str]:
        """The options of the broker, which its configuration may override."""
        found = {"listeners": f"{self._protocol}://127.0.0.1:9092"}
        if self._uses_tls:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.directory / SERVER)}
        if self._uses_sasl:
            found |= {
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "authorizer.class.name": "StandardAuthorizer",
                "super.users": f"User:{ADMIN}",
            }
        else:
            # The authority of the broker issues client certificates, too.
            found |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.directory / CA_NAME),
                "ssl.client.auth": "requested",
            }
        return found

    def prepare(self, config: BrokerConfig) -> None:
        """Make what is missing, and renew what expires. Raises ConfigError."""
        self._listener_of(config.listen)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        if self._uses_tls:
            self._prepare_certificates(_names(config))

    def add_admin(self, log: Log) -> None:
        """Make the administrator, unless there is one with a password that is known here."""
        if not self._uses_sasl:
            return
        from broker.security.credentials.scram_users import ScramUsers, set_password

        users = ScramUsers(log.security_records)
        path = self.directory / PASSWORD_NAME
        known = path.exists()
        if not known:
            import secrets

            self._write(PASSWORD_NAME, f"{secrets.token_urlsafe(24)}\n".encode())
        password = self._password()
        missing = [each for each in MECHANISMS if not known or users.find(each, ADMIN) is None]
        # Whoever has deleted one of the credentials on purpose does not get it back.
        if known and len(missing) < len(MECHANISMS):
            return
        from broker.security.sasl.scram import MIN_ITERATIONS

        for mechanism in missing:
            set_password(users, ADMIN, mechanism, password, MIN_ITERATIONS)
        log.flush()
        logger.info("made the user %s; its password is in %s", ADMIN, path)

    def write_client_properties(self, listeners: list[Listener]) -> None:
        """Write the file for the address at which the listener is reached from this machine."""
        from broker.server.listener import reachable

        address = self._listener_of([each.address for each in listeners])
        (listener,) = [each for each in listeners if each.name == address.name]
        lines = {
            "bootstrap.servers": str(reachable(listener.bound)),
            "security.protocol": self._protocol,
        }
        if self._uses_sasl:
            login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
            lines |= {
                "sasl.mechanism": MECHANISMS[0],
                "sasl.jaas.config": f'{login} username="{ADMIN}" password="{self._password().reveal()}";',
            }
        if self._uses_tls:
            lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.directory / CA_NAME)}
        self._write(CLIENT_PROPERTIES, format_properties(lines).encode())
        logger.info("a client's configuration is in %s", self.client_properties)

    @property
    def _uses_tls(self) -> bool:
        return self._protocol.endswith("SSL")

    @property
    def _uses_sasl(self) -> bool:
        return self._protocol.startswith("SASL")

    def _listener_of(self, addresses: list[NamedAddress]) -> NamedAddress:
        for address in addresses:
            if address.security_protocol == self._protocol:
                return address
        raise ConfigError(f"--secure: no listener has the protocol {self._protocol}")

    def _prepare_certificates(self, names: list[str]) -> None:
        from broker.security import development

        now = datetime.datetime.now(datetime.UTC)
        try:
            authority = self._read(AUTHORITY)
            if not development.is_usable_authority(authority, now):
                if authority:
                    logger.warning("renewing the authority in %s: clients need the new %s", self.directory, CA_NAME)
                authority = development.make_authority(now)
                self._write(AUTHORITY, authority)
            certificate = development.certificate_of(authority)
            if self._read(CA_NAME) != certificate:
                self._write(CA_NAME, certificate)
            if not development.is_usable_server(self._read(SERVER), authority, names, now):
                self._write(SERVER, development.make_server(authority, names, now))
                logger.info("made a certificate for %s", ", ".join(names))
        except development.NoCryptography as error:
            raise ConfigError(f"--secure: {error}") from None

    def _password(self) -> Secret:
        return Secret(self._read(PASSWORD_NAME).decode(errors="replace").strip())

    def _read(self, name: str) -> bytes:
        try:
            return (self.directory / name).read_bytes()
        except FileNotFoundError:
            return b""

    def _write(self, name: str, content: bytes) -> None:
        replace_file(self.directory / name, content)


def _names(config: BrokerConfig) -> list[str]:
    """The host names and addresses at which clients may reach the broker."""
    endpoints = [*(address.endpoint for address in config.listen), *config.advertised.values()]
    given = [socket.gethostname(), *(endpoint.host for endpoint in endpoints)]
    return list(dict.fromkeys([*LOCAL_NAMES, *_certifiable(given)]))


def _certifiable(hosts: list[str]) -> Iterator[str]:
    """The hosts that can be in a certificate: no wildcards, and names in ASCII."""
    for host in hosts:
        if host in ("", "0.0.0.0", "::"):
            continue
        with contextlib.suppress(UnicodeError):
            yield host.partition("%")[0].encode("ascii").decode() if ":" in host else host.encode("idna").decode()
