"""Tests a connection step by step, and says what to do about the first step that fails."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from broker.protocol.acls import OPERATIONS as OPERATIONS_OF
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, Refused, Unsupported
from kgctl.client.net.opening import Address, Opening
from kgctl.client.net.steps import Endpoint
from kgctl.contexts.connecting import connection_to
from kgctl.contexts.names import BOOTSTRAP, REGISTRY_URL
from kgctl.contexts.target import Target
from kgctl.contexts.values import Reference
from kgctl.model.contexts import FAILED, OK, StepRow

if TYPE_CHECKING:
    from kgctl.client.net.sasl import Authenticated
    from kgctl.client.net.tls import Handshake

T = TypeVar("T")
SETTINGS, NAME, PORT, TLS, SASL = "settings", "name", "port", "tls", "sasl"
VERSIONS, BROKERS, OPERATIONS, REGISTRY = "api-versions", "brokers", "operations", "registry"
STEP_SECONDS = 10.0
_NOT_ASKED = -(2**31)
_SOON_DAYS = 30


def diagnose(target: Target, timeout: float | None, environ: Mapping[str, str] = os.environ) -> list[StepRow]:
    """The steps up to the first that fails for every bootstrap address, or all steps for the first address that works."""
    found = _Diagnosis(target, timeout or target.timeout or STEP_SECONDS)
    settings = found.take(
        SETTINGS, None, lambda: _usable(connection_to(target, timeout=timeout, environ=environ)), found.about_settings
    )
    if settings is None:
        return found.rows
    with Connector(settings) as connector:
        if any(found.opens(connector, endpoint) for endpoint in settings.bootstrap):
            found.ask(connector)
    if target.text(REGISTRY_URL) is not None and found.rows[-1].status == OK:
        found.take(REGISTRY, None, lambda: _registry(target, timeout, environ), str)
    return found.rows


def _registry(target: Target, timeout: float | None, environ: Mapping[str, str]) -> str:
    """What the schema registry answers."""
    from kgctl.client.schema_registry.errors import MissingExtra
    from kgctl.client.schema_registry.registry import Registry
    from kgctl.contexts.registry import registry_of

    settings = registry_of(target, None, timeout=timeout, environ=environ)
    try:
        registry = Registry(settings)
    except MissingExtra as error:
        return f"not tested: {error}"
    try:
        count = registry.count_subjects()
    finally:
        registry.close()
    return f"{settings.url}: {count} subject{'s' * (count != 1)} visible"


def _usable(settings: ConnectionSettings) -> ConnectionSettings:
    """The settings, after reading the files for TLS that they name."""
    if settings.security.tls is not None:
        from kgctl.client.net.tls import client_context

        client_context(settings.security.tls)
    return settings


class _Diagnosis:
    def __init__(self, target: Target, seconds: float) -> None:
        self._target, self._seconds = target, seconds
        self.rows: list[StepRow] = []

    def take(
        self, step: str, where: Endpoint | None, run: Callable[[], T], detail: Callable[[T], str | None]
    ) -> T | None:
        """Run one step and note the outcome; None if it failed."""
        begun = time.monotonic()
        address = None if where is None else str(where)
        try:
            result = run()
            text = detail(result)
        except KgctlError as error:
            took = round((time.monotonic() - begun) * 1000, 1)
            said = str(error).removeprefix(f"{address}: ")
            self.rows.append(StepRow(step, FAILED, address, said, took, self._advice(step, error)))
            return None
        if text is not None:
            took = round((time.monotonic() - begun) * 1000, 1)
            self.rows.append(StepRow(step, OK, address, text, took, None))
        return result

    def about_settings(self, settings: ConnectionSettings) -> str:
        secrets = [name for name, one in self._target.values.items() if isinstance(one.value, Reference)]
        parts = [settings.security.protocol, *(["secrets found: " + ", ".join(secrets)] if secrets else [])]
        return "; ".join([*parts, *(f"warning: {sentence}" for sentence in settings.security.warnings)])

    def opens(self, connector: Connector, endpoint: Endpoint) -> bool:
        """Whether a connection to this address can be opened and is served."""
        with connector.opening(endpoint, time.monotonic() + self._seconds) as opening:
            steps: list[tuple[str, Callable[[], Any], Callable[[Any], str | None]]] = [
                (NAME, opening.resolve, _addresses),
                (PORT, opening.connect, lambda address: f"{address} answers"),
                (TLS, opening.secure, _handshake),
                (SASL, opening.authenticate, _authenticated),
                (VERSIONS, lambda: self._versions(opening), lambda count: f"{count} requests offered"),
            ]
            for step, run, detail in steps:
                before = len(self.rows)
                self.take(step, endpoint, run, detail)
                if len(self.rows) > before and self.rows[-1].status == FAILED:
                    return False
        return True

    def _versions(self, opening: Opening) -> int:
        connection: Connection = opening.connection
        answer = connection.exchange(ApiVersionsRequest(), 0, ApiVersionsResponse, time.monotonic() + self._seconds)
        assert isinstance(answer, ApiVersionsResponse)
        return len(answer.api_keys)

    def ask(self, connector: Connector) -> None:
        """What the cluster says: the addresses of its brokers, and what this user may do."""
        if self.take(BROKERS, None, lambda: self._reach_brokers(connector), str) is not None:
            self.take(OPERATIONS, None, lambda: _operations(connector), str)

    def _reach_brokers(self, connector: Connector) -> str:
        """Open a connection to every broker, at the address that it advertises."""
        metadata = connector.run(connector.cluster.metadata([]))
        for broker in metadata.brokers:
            connector.connect(Endpoint(broker.host, broker.port), time.monotonic() + self._seconds).close()
        count = len(metadata.brokers)
        brokers = "1 broker" if count == 1 else f"{count} brokers"
        return (
            f"{brokers} reached at the advertised address{'es' if count != 1 else ''}, cluster id {metadata.cluster_id}"
        )

    def _advice(self, step: str, error: KgctlError) -> str:
        source = self._target.values[BOOTSTRAP].source if BOOTSTRAP in self._target.values else BOOTSTRAP
        if step == PORT and isinstance(error, Refused):
            return self._target.advice
        if step == BROKERS and isinstance(error, AuthenticationFailed):
            # Listeners answer ApiVersions to clients that have not authenticated.
            step = SASL
        return {
            SETTINGS: "Correct the setting that the message names; `kgctl context show --explain` says where it stands.",
            NAME: f"Check the host name in {source}, and that DNS or a VPN resolves it.",
            PORT: f"Check the port in {source}; a firewall or a missing VPN also lets connections time out.",
            TLS: "Correct ssl.* or security.protocol as the message says; `kgctl context show --explain` says where they stand.",
            SASL: "Compare security.protocol, sasl.mechanism, user and password with those of the cluster.",
            VERSIONS: "Compare security.protocol with the listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
            BROKERS: "Clients connect to the address that a broker advertises: check advertised.listeners of that broker.",
            REGISTRY: "Correct the setting schema.registry.* that the message names, or ask who runs the registry.",
            OPERATIONS: "Ask for an ACL that allows this user to DESCRIBE the cluster.",
        }[step]


def _addresses(found: list[Address]) -> str:
    return ", ".join(dict.fromkeys(str(address.place[0]) for address in found))


def _handshake(found: Handshake | None) -> str | None:
    if found is None:
        return None
    parts = [f"{found.version} with {found.cipher}"]
    if found.peer is not None:
        peer = found.peer
        days = int((peer.expires_at - time.time()) // 86_400)
        soon = f", in {days} days" if days <= _SOON_DAYS else ""
        parts += [f"peer {peer.subject}", f"issued by {peer.issuer}", f"expires {peer.expiry}{soon}"]
    return "; ".join(parts)


def _authenticated(found: Authenticated | None) -> str | None:
    if found is None:
        return None
    who = f" as {found.user}" if found.user else ""
    ends = f", session of {found.lifetime:.0f} s" if found.lifetime else ""
    return f"{found.mechanism}{who}{ends}"


def _operations(connector: Connector) -> str:
    """What the user may do: with the cluster, and with how many topics (KIP-430)."""
    try:
        ask = DescribeClusterRequest(include_cluster_authorized_operations=True)
        cluster = connector.run(connector.cluster.ask_any(ask, DescribeClusterResponse))
        bits = cluster.cluster_authorized_operations
        request = MetadataRequest(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        answer = connector.run(connector.cluster.ask_any(request, MetadataResponse, min_version=8))
    except Unsupported:
        return "not reported by this broker"
    topics = [topic for topic in answer.topics if not topic.is_internal]
    counts = Counter(name for topic in topics for name in _names(topic.topic_authorized_operations))
    allowed = ", ".join(f"{name} {count}" for name, count in counts.items()) or "no operation allowed"
    if len(counts) == len(OPERATIONS_OF[ResourceType.TOPIC]) and set(counts.values()) == {len(topics)}:
        allowed = "all operations allowed"
    on_topics = (
        f"{len(topics)} topic{'s' if len(topics) != 1 else ''} visible: {allowed}" if topics else "no topic visible"
    )
    return f"cluster: {', '.join(_names(bits)) or 'no operation allowed'}; {on_topics}"


def _names(bits: int) -> list[str]:
    if bits == _NOT_ASKED:
        return []
    return [one.name for one in Operation if one > Operation.ALL and bits >> one & 1]
