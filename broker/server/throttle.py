"""Throttle: charges requests to the quotas of their senders, and says for how long those that exceed one are muted.

As in Kafka's ClientQuotaManager, the answer names the time, and the broker runs no further request of the connection until it has
passed. Without quotas nothing is measured: `enforced` is false, and exchanges have no `Work`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.codec import encode_parts
from broker.server.exchange import completed
from broker.server.work import Work
from broker.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.config.config import BrokerConfig
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.security.quotas.quotas import Change, ClientQuotas, Outcome
    from broker.server.exchange import Answerable, Exchange
    from broker.storage import Log

    Encode = Callable[[Exchange, Message], list[Part]]

# The kind of the records in the store.
KIND = "client_quotas"
PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
FLEXIBLE_FETCH = 12
AUTHENTICATION = (17, 36)
INT_MAX = 2**31 - 1


class Throttle:
    """The quotas of the broker, as its connections and handlers use them. A client is its principal with its client id."""

    def __init__(self, config: BrokerConfig, log: Log, clock: Callable[[], float]) -> None:
        """Load the quotas. Raises StorageError if one cannot be read."""
        self._config = config
        self._records = log.security_records
        self._clock = clock
        self._quotas: ClientQuotas | None = None
        self.enforced = False
        stored = self._records.all(KIND)
        if stored:
            try:
                self.quotas.load(stored)
            except (ValueError, AttributeError, TypeError) as error:
                raise StorageError(f"the store has a quota that this version cannot read: {error}") from error
            self._update()

    @property
    def quotas(self) -> ClientQuotas:
        """Loads its modules at first use: most brokers have no quotas."""
        if self._quotas is None:
            from broker.security.quotas.quotas import ClientQuotas
            from broker.security.quotas.rates import Windows

            config = self._config
            self._quotas = ClientQuotas(
                Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
                Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000),
            )
        return self._quotas

    def alter(self, changes: Sequence[Change], is_address: Callable[[str], bool], *, check: bool) -> list[Outcome]:
        """Make the changes that are valid, and store them; none if `check`. They are in force at once."""
        outcomes = self.quotas.alter(changes, is_address, check=check)
        if not check:
            for entity in dict.fromkeys(change.entity for change in changes):
                name, text = self.quotas.encoded(entity)
                if text is None:
                    self._records.delete(KIND, name)
                else:
                    self._records.put(KIND, name, text)
            self._update()
        return outcomes

    def begin(self, exchange: Exchange, request_bytes: int) -> Work | None:
        """The work of a request that is about to run; authentication is free."""
        if exchange.api_key in AUTHENTICATION or not exchange.connection.session.authenticated:
            return None
        return Work(request_bytes, self._clock)

    def settle(self, exchange: Exchange, work: Work) -> int:
        """The handler has returned: stop the clock, and charge a request that gets no answer. Return the throttle time."""
        work.pause()
        return self._charge(exchange, work) if exchange.answered and not work.charged else 0

    def charge(self, exchange: Exchange, work: Work, response: Message, encode: Encode) -> tuple[list[Part], int]:
        """Charge a request. Return the encoded answer, which has the throttle time, and the throttle time in milliseconds."""
        work.pause()
        response = completed(exchange, response)
        if exchange.api_key == FETCH:
            parts = encode(exchange, response)
            throttle_ms = self._charge_fetched(exchange, work, sum(map(len, parts)) - _header_bytes(exchange))
            if not throttle_ms:
                if work.fetch is not None:
                    work.fetch.sent()
                return parts, 0
            if work.fetch is not None:
                response = work.fetch.throttled(throttle_ms)
            else:
                from broker.protocol.messages.fetch import FetchResponse

                response = FetchResponse(throttle_time_ms=throttle_ms, responses=[])
        else:
            throttle_ms = self._charge(exchange, work, work.spent_s)
            if exchange.api_key == SHARE_FETCH:
                throttle_ms = max(throttle_ms, self._charge_shared(exchange, response))
            if hasattr(response, "throttle_time_ms"):
                # The handler may have set one itself.
                throttle_ms = response.throttle_time_ms = max(throttle_ms, response.throttle_time_ms)
        return encode(exchange, response), throttle_ms

    def _charge(self, exchange: Exchange, work: Work, spent_s: float = 0.0) -> int:
        """Charge a request for its time and, if it produces, for its size. The time of one without an answer is free, as in Kafka."""
        work.charged = True
        client, now_ms = _client(exchange), self._clock() * 1000
        throttle_ms = self.quotas.record("request_percentage", *client, spent_s * 100, now_ms) if spent_s else 0
        if exchange.api_key == PRODUCE:
            produce_ms = self.quotas.record("producer_byte_rate", *client, work.request_bytes, now_ms)
            throttle_ms = max(throttle_ms, produce_ms)
        return throttle_ms

    def _charge_fetched(self, exchange: Exchange, work: Work, fetched_bytes: int) -> int:
        """Charge a Fetch for its time and its answer. If it is throttled, the answer has to be empty, and is free."""
        throttle_ms = self._charge(exchange, work, work.spent_s)
        client, now_ms = _client(exchange), self._clock() * 1000
        throttle_ms = max(throttle_ms, self.quotas.record("consumer_byte_rate", *client, fetched_bytes, now_ms))
        if throttle_ms:
            self.quotas.take_back("consumer_byte_rate", *client, fetched_bytes, now_ms)
        return throttle_ms

    def _charge_shared(self, exchange: Exchange, response: Message) -> int:
        """Charge a ShareFetch for its answer, which is sent in full: its records are acquired. In Kafka, they would be lost to all members
        until their locks time out.
        """
        answer_bytes = 4 + sum(map(len, encode_parts(response, exchange.version)))
        now_ms = self._clock() * 1000
        return self.quotas.record("consumer_byte_rate", *_client(exchange), answer_bytes, now_ms)

    def most_fetched(self, exchange: Answerable) -> int:
        """The most bytes that one Fetch of this client can get without being throttled each time."""
        return int(min(self.quotas.most_at_once("consumer_byte_rate", *_client(exchange)), INT_MAX))

    def mutations(self, exchange: Answerable, strict_since: int) -> Mutations:
        """What a request that creates or deletes partitions is charged for. Newer versions can say what was refused."""
        return Mutations(self, exchange, strict=exchange.version >= strict_since)

    def charge_mutations(self, exchange: Answerable, count: int, *, strict: bool) -> int:
        """Return the throttle time; if `strict`, 0 means that they are allowed."""
        return self.quotas.record_mutations(*_client(exchange), count, self._clock() * 1000, strict=strict)

    def allow_connection(self, address: str) -> bool:
        """Count a new connection of an IP address, unless it has made too many lately."""
        return self.quotas.record_connection(address, self._clock() * 1000) == 0

    def _update(self) -> None:
        self.enforced = bool(self.quotas.keys)


class Mutations:
    """The partitions that one request creates or deletes, and the throttle time (KIP-599)."""

    def __init__(self, throttle: Throttle, exchange: Answerable, *, strict: bool) -> None:
        self._throttle, self._exchange, self._strict = throttle, exchange, strict
        self.throttle_ms = 0

    def allow(self, partitions: int) -> bool:
        """Charge these partitions; false if the quota is exhausted. Older versions are only throttled."""
        if not self._throttle.enforced:
            return True
        throttle_ms = self._throttle.charge_mutations(self._exchange, partitions, strict=self._strict)
        self.throttle_ms = max(self.throttle_ms, throttle_ms)
        return not (self._strict and throttle_ms)


def _client(exchange: Answerable) -> tuple[str, str]:
    return exchange.connection.session.principal.partition(":")[2], exchange.client_id or ""


def _header_bytes(exchange: Exchange) -> int:
    """What an answer has before its body, besides its size: Kafka does not count it."""
    return 5 if exchange.version >= FLEXIBLE_FETCH else 4
