"""Golden scenarios of the transaction coordinator: text files of requests, each followed by everything that the core does.

A line without indentation is a comment (#), a setting, a request, or one of the directives below. The indented lines that follow are
the outcome, written by `python -m tests.broker.cores.transactions.traces --write` and reviewed as a diff.

    settings transaction.max.timeout.ms=60000     also: transactional.id.expiration.ms, transaction.version
    0.5 InitProducerId v5 id=t timeout=60 producer=0 epoch=0
    1 verify id=t partitions=orders/0             asks whether the partition is part of the transaction, as Produce v9 does; add= as v12
    2 given Ongoing a b                           brings new transactional ids into a state, each with its own producer id
    2 given Ongoing a epoch=32766                 the same with that epoch
    3 hold                                        from now on markers are written only by:
    3 write t
        wait 3.0                                  lets time pass until then and runs the timers that are due
        restart 5.0                               kills the broker, and starts it with what it has persisted

Times are seconds. The id is "t" and the partition is "orders/0" if a line names none. A producer id or an epoch is a number or "now", that
of the newest state; "last" is the epoch before it. Both are "now" if omitted, except in InitProducerId, which then has none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from broker.cores.transactions.records import TransactionRecord, to_row
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import BY_NAME, TransactionState
from broker.cores.transactions.step import TransactionEffects
from tests.broker.cores.groups.trace_text import show_message, show_seconds
from tests.broker.cores.transactions.trace_requests import DEFAULT_ID, REQUESTS, Values, millis, read_partitions
from tests.broker.cores.transactions.trace_text import show_markers, show_record
from tests.broker.cores.transactions.world import World

TRACES = Path(__file__).parent / "traces"
ABSENT = "absent"  # the state of a transactional id that the coordinator does not know
LONG_MS = 3_600_000  # a deadline that is further away is that of the check for expired ids


@dataclass
class Run(World):
    """One scenario being played."""

    lines: list[str] = field(default_factory=list)  # the outcome of the present line
    shown_wake: str = "-"
    covered: set[tuple[str, str]] = field(default_factory=set)  # (state, request) of all requests so far

    def take(self, effects: TransactionEffects) -> None:
        self.lines += [f"record {show_record(record)}" for record in effects.state_records]
        verb = "hold" if self.holds_markers else "write"
        self.lines += [f"{verb} markers {show_markers(markers)}" for markers in effects.markers]
        super().take(effects)

    def state(self, transactional_id: str) -> str:
        record = self.core.transaction(transactional_id)
        return record.state.kafka_name if record is not None else ABSENT

    def act(self, words: list[str], values: Values) -> None:
        match words:
            case ["wait", until]:
                self.let_pass(millis(until) - self.now_ms)
            case ["restart", at]:
                self.now_ms = millis(at)
                self.start()
            case [at, *rest]:
                self.let_pass(millis(at) - self.now_ms)
                self._act_now(rest, values)

    def _act_now(self, words: list[str], values: Values) -> None:
        match words:
            case ["hold"]:
                self.holds_markers = True
            case ["write", transactional_id]:
                self.write_markers(transactional_id)
            case ["given", state, *names]:
                self._bring_into(BY_NAME[state], [name for name in names if "=" not in name], values)
            case ["verify" | "add" as action, *_]:
                values = self._complete(values)
                self.covered.add((self.state(values["id"]), f"{action} {self._kind(values)}".rstrip()))
                errors = self.verify(
                    values["id"],
                    int(values["producer"]),
                    int(values["epoch"]),
                    read_partitions(values),
                    add=action == "add",
                )
                self.lines += [f"{topic}/{index}: {error.name}" for (topic, index), error in errors.items()]
            case [api, version, *_]:
                self._request(api, int(version.removeprefix("v")), values)

    def _request(self, api: str, version: int, values: Values) -> None:
        values = self._complete(values, is_init=api == "InitProducerId")
        name = f"{api} v{version} {values['result']}" if api == "EndTxn" else api
        kind = "" if api in ("DescribeTransactions", "ListTransactions") else self._kind(values)
        about = self.states() if api == "ListTransactions" else {self.state(name) for name in values["id"].split(",")}
        self.covered |= {(state, f"{name} {kind}".rstrip()) for state in about}
        response = self.ask(REQUESTS[api](values, version), version)
        self.lines.append(f"<- {show_message(response, version)}")

    def states(self) -> set[str]:
        return {record.state.kafka_name for record in self.core.transactions()} | {ABSENT}

    def _complete(self, values: Values, *, is_init: bool = False) -> Values:
        """The values with what the line omits, and numbers for "now" and "last"."""
        out = {"id": DEFAULT_ID, **({} if is_init else {"producer": "now", "epoch": "now"}), **values}
        record = self.core.transaction(out["id"])
        producer_id, epoch = (record.producer_id, record.producer_epoch) if record is not None else (7, 0)
        names = {"producer": {"now": producer_id}, "epoch": {"now": epoch, "last": epoch - 1, "next": epoch + 1}}
        for key, known in names.items():
            if key in out and out[key] in known:
                out[key] = str(known[out[key]])
        return out

    def _kind(self, values: Values) -> str:
        """How the producer of a request is related to the present one."""
        record = self.core.transaction(values["id"])
        if record is None or "producer" not in values:
            return ""
        if int(values["producer"]) != record.producer_id:
            return "of another producer"
        distance = int(values.get("epoch", -1)) - record.producer_epoch
        return {0: "", -1: "with the last epoch", 1: "with the next epoch"}.get(distance, "with an old epoch")

    def _bring_into(self, state: TransactionState, names: list[str], values: Values) -> None:
        for name in names:
            record = TransactionRecord(
                transactional_id=name,
                producer_id=self._new_producer_id(),
                producer_epoch=int(values.get("epoch", "5")),
                timeout_ms=millis(values.get("timeout", "60")),
                state=state,
                partitions=() if state.is_idle else read_partitions(values),
                start_timestamp_ms=-1 if state is TransactionState.EMPTY else self.wall_ms,
                update_timestamp_ms=self.wall_ms,
                client_transaction_version=int(values.get("client", "2")),
            )
            row = to_row(record, self.level)
            assert row.value is not None
            self.rows[row.key] = row.value, row.timestamp_ms
        self.holds_markers = self.holds_markers or state.is_prepared
        self.start()

    def outcome(self) -> list[str]:
        """The outcome of the line that was played, and the next deadline if it has changed."""
        out, self.lines = self.lines, []
        near = self.wake_at is not None and self.wake_at < self.now_ms + LONG_MS
        wake = show_seconds(self.wake_at) if near and self.wake_at is not None else "-"
        if wake != self.shown_wake:
            out.append(f"wake at {wake}")
            self.shown_wake = wake
        return out


def play(text: str) -> str:
    """The scenario with the outcome of each line."""
    return perform(text)[0]


def perform(text: str) -> tuple[str, set[tuple[str, str]]]:
    """The scenario with the outcome of each line, and the pairs (state of the transactional id, request) that occurred."""
    run, out = _run({}), []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        out.append(line)
        words = [] if line.startswith("#") else line.split()
        values = dict(word.split("=", 1) for word in words if "=" in word)
        if words[:1] == ["settings"]:
            run = _run(values)
        elif words:
            run.act(words, values)
            out += [f"    {shown}" for shown in run.outcome()]
    return "\n".join(out) + "\n", run.covered


def _run(values: Values) -> Run:
    defaults = TransactionSettings(expiry_check_interval_ms=2 * LONG_MS)
    settings = TransactionSettings(
        int(values.get("transaction.max.timeout.ms", defaults.max_timeout_ms)),
        int(values.get("transactional.id.expiration.ms", defaults.expiration_ms)),
        defaults.expiry_check_interval_ms,
    )
    return Run(settings, int(values.get("transaction.version", "2")))


def main() -> None:
    """Write the outcome of each scenario into its file (--write), or print which files would change."""
    for path in sorted(TRACES.glob("*.txt")):
        before = path.read_text()
        after = play(before)
        if before != after:
            print(("wrote " if "--write" in sys.argv else "differs: ") + path.name)
            if "--write" in sys.argv:
                path.write_text(after)


if __name__ == "__main__":
    main()
