"""Telemetry of clients (KIP-714): subscriptions, the instances of clients, and what they pushed last. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from zlib import crc32

from broker.cores.patterns import Pattern
from broker.light_named_tuples import NamedTuple
from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from broker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from broker.protocol.uuids import spelled
from broker.protocol.wire_types import ZERO_UUID

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
# An instance that was silent for this time, and for three intervals, is forgotten.
FORGET_AFTER_MS = 60_000
# As in Kafka.
MOST_INSTANCES = 16_384
# Of all pushes together; beyond it, those of the instances that were silent for longest are dropped.
MOST_BYTES = 32 * 1024 * 1024
COMPRESSION_TYPES = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
# Ids that Kafka reserves: none, and that of its metadata topic.
RESERVED_IDS = (ZERO_UUID, bytes(15) + b"\x01")
# After these errors a client may ask for its subscription at once.
_ASKS_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Client(NamedTuple):
    """Who sends a request: the number of its connection, and what subscriptions may match."""

    connection: int
    client_id: str
    software_name: str
    software_version: str
    host: str
    port: int

    def attributes(self, instance_id: str) -> Mapping[str, str]:
        """By the names that the config `match` uses."""
        return {
            "client_instance_id": instance_id,
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.host,
            "client_source_port": str(self.port),
        }


class Subscription(NamedTuple):
    """What clients that match all patterns should send."""

    metrics: Sequence[str]
    interval_ms: int
    match: Mapping[str, Pattern]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(pattern.matches(attributes[name]) for name, pattern in self.match.items())


class Push(NamedTuple):
    """The last metrics of an instance, and how many it sent."""

    metrics: bytes = b""
    compression_type: int = Codec.NONE
    wall_ms: int = -1
    pushes: int = 0


class Instance:
    """A client, as it is known between its requests. `number` counts the instances."""

    __slots__ = (
        "client",
        "got_ms",
        "has_new_subscription",
        "id",
        "interval_ms",
        "last_error",
        "metrics",
        "number",
        "push",
        "pushed_ms",
        "subscription_id",
        "terminating",
        "used_ms",
        "version",
    )

    def __init__(self, number: int, instance_id: bytes, client: Client, version: int) -> None:
        self.number, self.id, self.client, self.version = number, instance_id, client, version
        self.metrics: list[str] = []
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.subscription_id = 0
        self.got_ms: int | None = None
        self.has_new_subscription = False
        self.pushed_ms: int | None = None
        self.used_ms = 0
        self.terminating = False
        self.last_error = ErrorCode.NONE
        self.push = Push()

    def may_get(self, now_ms: int) -> bool:
        last = max((each for each in (self.got_ms, self.pushed_ms) if each is not None), default=None)
        return last is None or now_ms - last >= self.interval_ms or self.last_error in _ASKS_AGAIN

    def may_push(self, now_ms: int) -> bool:
        """The first push may follow the subscription at once: clients wait for a random part of the interval."""
        return self.pushed_ms is None or self.has_new_subscription or now_ms - self.pushed_ms >= self.interval_ms


class Telemetry:
    """The client instances of one broker."""

    def __init__(self, max_bytes: int, draw_id: Callable[[], bytes]) -> None:
        """`max_bytes` limits one push. `draw_id` returns random ids."""
        self._max_bytes = max_bytes
        self._draw_id = draw_id
        self._subscriptions: list[Subscription] = []
        self._version = 0
        # The instance that was silent for longest comes first.
        self._instances: dict[bytes, Instance] = {}
        self._known = 0
        self._held = 0
        self.throttled = self.unknown_subscriptions = 0

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """These subscriptions are in force now, and no others."""
        self._subscriptions = list(subscriptions)
        self._version += 1

    def instances(self) -> list[Instance]:
        return sorted(self._instances.values(), key=lambda instance: instance.number)

    def get(
        self, request: GetTelemetrySubscriptionsRequest, client: Client, now_ms: int
    ) -> GetTelemetrySubscriptionsResponse:
        instance_id = request.client_instance_id
        if instance_id == ZERO_UUID:
            instance_id = self._draw_id()
        instance = self._instance(instance_id, client, now_ms)
        if not instance.may_get(now_ms):
            self.throttled += 1
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.got_ms = now_ms
        instance.has_new_subscription = True
        instance.last_error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=[*COMPRESSION_TYPES],
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self._max_bytes,
            # The last push alone is kept.
            delta_temporality=False,
            requested_metrics=instance.metrics,
        )

    def push(self, request: PushTelemetryRequest, client: Client, now_ms: int, wall_ms: int) -> PushTelemetryResponse:
        if request.client_instance_id in RESERVED_IDS:
            return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
        instance = self._instance(request.client_instance_id, client, now_ms)
        error = self._push_error(request, instance, now_ms)
        instance.last_error = error
        instance.terminating = request.terminating
        if error is ErrorCode.NONE and request.metrics:
            pushed = Push(bytes(request.metrics), request.compression_type, wall_ms, instance.push.pushes + 1)
            self._keep(instance, pushed)
        return PushTelemetryResponse(error_code=error)

    def _push_error(self, request: PushTelemetryRequest, instance: Instance, now_ms: int) -> ErrorCode:
        if instance.terminating:
            return ErrorCode.INVALID_REQUEST
        if instance.may_push(now_ms):
            instance.pushed_ms = now_ms
            instance.has_new_subscription = False
        elif not request.terminating:
            self.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in (Codec.NONE, *COMPRESSION_TYPES):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self._max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _instance(self, instance_id: bytes, client: Client, now_ms: int) -> Instance:
        """The instance, which starts over with another connection and with other subscriptions, but keeps its push."""
        self.forget(now_ms)
        found = self._instances.pop(instance_id, None)
        if found is None or found.version != self._version or found.client != client:
            made = self._made(instance_id, client, found)
            if found is None and len(self._instances) >= MOST_INSTANCES:
                self._drop(next(iter(self._instances.values())))
            found = made
        found.used_ms = now_ms
        self._instances[instance_id] = found
        return found

    def _made(self, instance_id: bytes, client: Client, before: Instance | None) -> Instance:
        if before is None:
            self._known += 1
        made = Instance(self._known if before is None else before.number, instance_id, client, self._version)
        attributes = client.attributes(spelled(instance_id))
        matching = [each for each in self._subscriptions if each.matches(attributes)]
        metrics = {name for each in matching for name in each.metrics}
        made.metrics = [ALL_METRICS] if ALL_METRICS in metrics else sorted(metrics)
        made.interval_ms = min((each.interval_ms for each in matching), default=DEFAULT_INTERVAL_MS)
        crc = crc32(instance_id + repr((made.metrics, made.interval_ms)).encode())
        made.subscription_id = crc - 2**32 if crc >= 2**31 else crc
        if before is not None:
            made.push = before.push
        return made

    def _keep(self, instance: Instance, pushed: Push) -> None:
        self._held += len(pushed.metrics) - len(instance.push.metrics)
        instance.push = pushed
        for silent in self._instances.values():
            if self._held <= MOST_BYTES:
                return
            if silent is not instance:
                self._held -= len(silent.push.metrics)
                silent.push = silent.push._replace(metrics=b"")

    def forget(self, now_ms: int) -> None:
        """Forget instances that are silent for too long."""
        while self._instances:
            silent = next(iter(self._instances.values()))
            if now_ms - silent.used_ms <= max(FORGET_AFTER_MS, 3 * silent.interval_ms):
                return
            self._drop(silent)

    def _drop(self, instance: Instance) -> None:
        del self._instances[instance.id]
        self._held -= len(instance.push.metrics)
