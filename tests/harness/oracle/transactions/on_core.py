"""Plays recorded walks on the transaction coordinator alone, without a log, sockets or real time.

What the coordinator needs to know of the partitions comes from the recording: which exist, and in which of them a producer
already has an open transaction, so that Produce need not verify it. Requests to partitions and groups count by what they ask of the
coordinator: Produce and TxnOffsetCommit verify their partitions.
"""

from __future__ import annotations

import itertools
from typing import Any

from broker.cores.core import RequestContext
from broker.cores.transactions.coordinator import HANDLERS, TransactionCoordinator
from broker.cores.transactions.records import TransactionRecord, TransactionsRow, from_row, to_row
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import TransactionEffects
from broker.protocol.codec import decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.offsets_topic import TOPIC as OFFSETS_TOPIC
from broker.protocol.offsets_topic import partition_for
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.transactions import forms, history
from tests.harness.oracle.transactions.names import AGE_MS, Names
from tests.harness.oracle.transactions.player import HISTORY, RESTART, WAIT, State, Step, described_transactions
from tests.harness.oracle.transactions.record import full_states

ASKED = {request.__name__.removesuffix("Request") for request in HANDLERS}
# What the server answers without the coordinator: unknown topics, and invalid ids of groups.
OF_SERVER = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INVALID_GROUP_ID}
# What a Produce answers before it verifies.
BEFORE_VERIFICATION = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
IMPLICIT_SINCE = {"Produce": 12, "TxnOffsetCommit": 5}
STEP_MS = 10
WALL_MS = 1_700_000_000_000


class CorePlayer:
    """A coordinator and the time of a walk."""

    def __init__(self, walk: dict[str, Any], transaction_version: int) -> None:
        self.names = Names(walk["topics"], walk["groups"], walk["transactional_ids"])
        self.names.started_ms = WALL_MS - AGE_MS
        self.transactional_ids: list[str] = walk["transactional_ids"]
        self.version = transaction_version
        self.now_ms = 1_000
        self._rows: dict[bytes, TransactionsRow] = {}
        self._history: dict[str, list[Any]] = {}
        self._next_id = itertools.count(1_000)
        self._store_epochs(walk)
        self._core = self._started()

    def play(self, step: Step, before: State) -> Any:
        """The response of the coordinator, or the error of each verified partition; None if the step does not concern it."""
        self.now_ms += STEP_MS
        if step["api"] == RESTART:
            self._core = self._started()
        elif step["api"] == WAIT:
            wake_at = self._core.wake_at()
            assert wake_at is not None, "nothing to wait for"
            self.now_ms = max(self.now_ms, wake_at)
        self._perform(self._core.advance(self.now_ms, self._wall_ms()))
        if step["api"] == HISTORY:
            return {name: self._history.get(name, []) for name in self.transactional_ids}
        if step["api"] in ASKED:
            asked = _without_unknown(step)
            return self._answer(asked) if asked is not None else None
        if step["api"] in IMPLICIT_SINCE:
            return self._verified(step, before)
        return None

    def state(self) -> State:
        request = DescribeTransactionsRequest(
            transactional_ids=[self.names.live[one] for one in self.transactional_ids]
        )
        effects = self._core.handle(request, self._context(0), self.now_ms)
        return described_transactions(forms.recorded(effects.replies[0].response, 0, self.names))

    def _store_epochs(self, walk: dict[str, Any]) -> None:
        """A walk may begin with epochs that were used up before."""
        for symbol, epoch in walk["epochs"].items():
            live, (_, producer, _, timeout_ms, _, _) = self.names.live[symbol], walk["before"][symbol]
            self.names.bind(producer, next(self._next_id))
            record = TransactionRecord(
                transactional_id=live,
                producer_id=self.names.live[producer],
                producer_epoch=epoch,
                timeout_ms=timeout_ms,
                state=TransactionState.EMPTY,
                update_timestamp_ms=WALL_MS,
            )
            row = to_row(record, self.version)
            self._rows[row.key] = row

    def _started(self) -> TransactionCoordinator:
        core = TransactionCoordinator(
            TransactionSettings(), lambda: next(self._next_id), lambda: self.version, partition_for
        )
        for row in self._rows.values():
            record = from_row(row.key, row.value, row.timestamp_ms)
            assert record is not None
            core.apply(record)
        self._core = core
        self._perform(core.resume(self.now_ms, self._wall_ms()))
        return core

    def _answer(self, step: Step) -> Any:
        if step["api"] == "InitProducerId" and step["request"]["transactional_id"] is None:
            symbol = step["response"]["producer_id"]
            if symbol not in self.names.live and symbol != -1:
                self.names.bind(symbol, next(self._next_id))
            return None
        version = step["version"]
        request = forms.build(forms.BY_NAME[step["api"]].request, self.names.living(step["request"]), self.names)
        request = decode(type(request), encode(request, version), version)
        effects = self._perform(self._core.handle(request, self._context(version), self.now_ms))
        [reply] = effects.replies
        response: Any = reply.response
        message = decode(type(response), encode(response, version), version)
        return forms.recorded(forms.of_walk(message, self.names), version, self.names)

    def _verified(self, step: Step, before: State) -> Any:
        wanted = _of_produce(step, before) if step["api"] == "Produce" else _of_offsets(step, before)
        if wanted is None:
            return None
        producer_id, epoch, places = wanted
        live = [self.names.living([topic, partition]) for topic, partition in places]
        effects, errors = self._core.verify(
            self.names.live.get(step["request"]["transactional_id"], step["request"]["transactional_id"]),
            self.names.living(producer_id),
            epoch,
            [(topic, partition) for topic, partition in live],
            add=step["version"] >= IMPLICIT_SINCE[step["api"]],
            now_ms=self.now_ms,
            wall_ms=self._wall_ms(),
        )
        self._perform(effects)
        return {f"{t}-{p}": errors[topic, one] for (t, p), (topic, one) in zip(places, live, strict=True)}

    def _perform(self, effects: TransactionEffects) -> TransactionEffects:
        for record in effects.state_records:
            row = to_row(record, self.version)
            self._rows[row.key] = row
            name = self.names.text(record.transactional_id)
            self._history.setdefault(name, []).append(history.entry(row.value, self.names))
            if row.value is None:
                del self._rows[row.key]
        for markers in effects.markers:
            self._perform(self._core.markers_written(markers.transactional_id, self.now_ms, self._wall_ms()))
        return effects

    def _context(self, version: int) -> RequestContext:
        return RequestContext(1, version, "client", "/127.0.0.1", "User:ANONYMOUS", self._wall_ms())

    def _wall_ms(self) -> int:
        return WALL_MS + self.now_ms


def _without_unknown(step: Step) -> Step | None:
    """The step without what the server answers itself; None if nothing is left. A batched request loses single transactions."""
    if not forms.codes(step["response"]) & OF_SERVER:
        return step
    if not step["request"].get("transactions"):
        return None
    kept = {
        one["transactional_id"]: one
        for one in step["response"]["results_by_transaction"]
        if not forms.codes(one) & OF_SERVER
    }
    request = {"transactions": [one for one in step["request"]["transactions"] if one["transactional_id"] in kept]}
    return step | {"request": request, "response": {"error_code": 0, "results_by_transaction": list(kept.values())}}


def _of_produce(step: Step, before: State) -> tuple[Any, int, list[tuple[str, Any]]] | None:
    """Producer id, epoch and partitions that a Produce asks the coordinator about."""
    request = step["request"]
    if forms.codes(step["response"]) & BEFORE_VERIFICATION or step["response"] == "closed":
        return None
    places, producers = [], set()
    for topic in request["topic_data"]:
        name = topic.get("name", topic.get("topic_id", "").removesuffix(".id"))
        for one in topic["partition_data"]:
            batch = one["records"][0]
            if not batch["tx"] or batch["pid"] == -1:
                continue
            known = before[f"{name}-{one['index']}"]
            if not isinstance(known, list):
                continue  # deleted
            producers.add((batch["pid"], batch["epoch"]))
            is_open = any(p[:2] == [batch["pid"], batch["epoch"]] and p[4] != -1 for p in known[4])
            if not is_open:
                places.append((name, one["index"]))
    if not places or len(producers) != 1:
        return None
    [(producer_id, epoch)] = producers
    return producer_id, epoch, places


def _of_offsets(step: Step, before: State) -> tuple[Any, int, list[tuple[str, Any]]] | None:
    request = step["request"]
    exist = any(
        isinstance(before.get(f"{topic['name']}-{one['partition_index']}"), list)
        for topic in request["topics"]
        for one in topic["partitions"]
    )
    if not exist or not request["group_id"]:
        return None
    return request["producer_id"], request["producer_epoch"], [(OFFSETS_TOPIC, f"@{request['group_id']}")]


def play_walk(walk: dict[str, Any], transaction_version: int) -> list[Difference]:
    """The differences of the first step that has any."""
    player = CorePlayer(walk, transaction_version)
    for step, before, after in full_states(walk):
        where = f"seed {walk['seed']} step {step['t']} {step['api']} v{step['version']}"
        response = player.play(step, before)
        out = []
        if step["api"] in ASKED:
            step = _without_unknown(step) or step
        if step["api"] in (*ASKED, HISTORY) and response is not None and response != step["response"]:
            out.append(Difference(f"{where}: answer", step["response"], response))
        state = player.state()
        want = {name: after[name] for name in walk["transactional_ids"]}
        if state != want:
            out.append(Difference(f"{where}: state after", want, state))
        if out:
            return out
    return []
