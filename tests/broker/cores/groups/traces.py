"""Golden scenarios of the group coordinator: text files of requests, each followed by everything that the core does.

A line without indentation is a comment (#), a setting, a request, or one of the directives below. The indented lines that
follow are the outcome, written by `python -m tests.broker.cores.groups.traces --write` and reviewed as a diff.

    settings group.initial.rebalance.delay.ms=1000
    topics orders=3
    0.5 c1 JoinGroup v9 member=c1-A session=10 rebalance=60 protocols=range:one,sticky:two
        0 given Stable c1 c2/i2 session=10      joins (and syncs) new members: of client c1, and of c2 with instance id i2
        wait 3.0                                lets time pass until then and runs the timers that are due
        restart 5.0                             kills the broker, and starts it with what it has persisted
    7 topic_deleted orders
    8 ended commit producer=7               ends a transaction (or "ended abort"; see `Run.end`)
        history                                 prints the events of the group, as __kgctl_group_events keeps them

Times are seconds. Omitted values have defaults that suit most scenarios (see `trace_requests`); the group is "g".
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.events import GroupEvent
from broker.cores.groups.records import GenerationFloor, OffsetCommitRecord, StateRecord, from_row
from broker.cores.groups.settings import GroupSettings
from broker.protocol.codec import decode, encode
from tests.broker.cores.groups.trace_requests import REQUESTS, Values, millis
from tests.broker.cores.groups.trace_text import WALL_MS, show_event, show_message, show_record, show_seconds
from tests.harness.group_core import Pending, handle, store, unloaded

OF_MEMBERS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "TxnOffsetCommit")
TRACES = Path(__file__).parent / "traces"


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One scenario being played: the core, its simulated clock, and the log from which it restarts."""

    settings: GroupSettings
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 3})
    now_ms: int = 0
    ids: int = 0
    tickets: dict[int, int] = field(default_factory=dict)  # ticket -> api version
    rows: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)  # the compacted log
    floors: dict[str, int] = field(default_factory=dict)
    pending: Pending = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    covered: set[tuple[str, str]] = field(default_factory=set)  # (state of the group, request) of all requests so far
    wake_at: int | None = None
    events: list[GroupEvent] = field(default_factory=list)

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def start(self) -> list[str]:
        """Start a coordinator from the log."""
        self.coordinator = Coordinator(self.settings, self._new_id, self)
        stored = self.stored()
        for record in stored:
            if not isinstance(record, OffsetCommitRecord):
                self.coordinator.apply(record)
        for group_id, generation in self.floors.items():
            self.coordinator.apply(GenerationFloor(group_id, generation))
        for pending in self.pending.values():
            self.coordinator.apply(pending)
        self.coordinator.expect_offsets(record.group_id for record in stored if isinstance(record, OffsetCommitRecord))
        self.tickets.clear()
        return self._effects(self.coordinator.resume(self.now_ms, WALL_MS + self.now_ms))

    def stored(self) -> list[StateRecord]:
        """The records of the compacted log."""
        records = [from_row(key, value, timestamp) for key, (value, timestamp) in self.rows.items()]
        return [record for record in records if record is not None]

    def stored_offsets(self, group_id: str) -> list[StateRecord]:
        return [r for r in self.stored() if isinstance(r, OffsetCommitRecord) and r.group_id == group_id]

    def request(self, client: str, api: str, version: int, values: Values) -> list[str]:
        request = REQUESTS[api](values, version)
        request = decode(type(request), encode(request, version), version)
        ticket = max(self.tickets, default=0) + 1
        self.tickets[ticket] = version
        for group_id in unloaded(self.coordinator, request):
            self.coordinator.load(group_id, self.stored_offsets(group_id))
        self.covered |= pairs(self, api, values)
        context = RequestContext(ticket, version, client, "/127.0.0.1", "User:ANONYMOUS", WALL_MS + self.now_ms)
        effects = handle(self.coordinator, request, context, self.now_ms)
        parked = [] if any(reply.ticket == ticket for reply in effects.replies) else [f"#{ticket} is parked"]
        return parked + self._effects(effects)

    def given(self, state: str, names: list[str], values: Values) -> list[str]:
        """Create a group in its first generation; its members join together, and sync if it is to be Stable."""
        group_id, covered = values.get("group", "g"), set(self.covered)
        for name in names:
            client, _, instance = name.partition("/")
            own = {"instance": instance} if instance else {}
            self.request(client, "JoinGroup", 9 if instance else 3, {**values, **own})
        group = self.coordinator.group(group_id)
        assert group is not None
        while group.state is GroupState.PREPARING_REBALANCE:
            assert self.wake_at is not None
            self.let_time_pass(self.wake_at)
        if state == "Stable":
            shares = ",".join(f"{member}:p{place}" for place, member in enumerate(group.members))
            for member in list(group.members):
                sync = {"group": group_id, "member": member, "generation": "1", "protocol": group.protocol or ""}
                self.request("c", "SyncGroup", 3, {**values, **sync, "assign": shares})
        assert group.state.value == state, group.state
        self.covered = covered
        members = ", ".join(f"{m.member_id} {m.assignment.decode()}".rstrip() for m in group.members.values())
        return [
            f"{group_id} is {state}, generation {group.generation}, leader {group.leader}; members {members}",
            f"wake at {show_seconds(self.wake_at or 0)}",
        ]

    def delete_topic(self, topic: str) -> list[str]:
        del self.topics[topic]
        return self._effects(self.coordinator.topic_deleted(topic, self.now_ms, WALL_MS + self.now_ms))

    def end(self, outcome: str, values: Values) -> list[str]:
        """The transaction of a producer ends, for all groups or for those that are named, in steps of `limit` offsets."""
        groups, more, out = values["groups"].split(",") if "groups" in values else None, True, []
        while more:
            effects, more = self.coordinator.end_transaction(
                int(values["producer"]),
                int(values.get("epoch", "0")),
                lambda group_id: groups is None or group_id in groups,
                int(values.get("limit", "1000")),
                self.now_ms,
                WALL_MS + self.now_ms,
                is_commit=outcome == "commit",
            )
            out += self._effects(effects) + (["more is left"] if more else [])
        return out

    def let_time_pass(self, until_ms: int) -> list[str]:
        out = []
        while self.wake_at is not None and self.wake_at <= until_ms:
            self.now_ms = max(self.now_ms, self.wake_at)
            lines = self._effects(self.coordinator.advance(self.now_ms, WALL_MS + self.now_ms))
            if lines[:-1]:
                out += [f"at {show_seconds(self.now_ms)}", *lines]
        self.now_ms = max(self.now_ms, until_ms)
        return out

    def history(self, group_id: str) -> list[str]:
        return [show_event(event, WALL_MS) for event in self.events if event.group_id == group_id]

    def _new_id(self) -> str:
        self.ids += 1
        return chr(ord("A") + self.ids - 1)

    def _effects(self, effects: Effects) -> list[str]:
        out = [f"record {show_record(record)}" for record in effects.state_records]
        for record in effects.state_records:
            self._store(record)
        self.events += effects.events
        for reply in effects.replies:
            version = self.tickets[reply.ticket]
            response = decode(type(reply.response), encode(reply.response, version), version)
            out.append(f"#{reply.ticket} <- {show_message(response, version)}")
        out += self._changed_states()
        self.wake_at = effects.wake_at_ms
        # The check for expired offsets is always scheduled, hours away in these scenarios.
        near = self.wake_at is not None and self.wake_at < self.now_ms + 3_600_000
        return [*out, f"wake at {show_seconds(self.wake_at) if near and self.wake_at is not None else '-'}"]

    def _store(self, record: StateRecord) -> None:
        store(record, self.rows, self.floors, self.pending)

    def state(self, group_id: str) -> str:
        group = self.coordinator.group(group_id)
        return group.state.value if group is not None else GroupState.DEAD.value

    def _changed_states(self) -> list[str]:
        out = []
        for group_id in dict.fromkeys([*self.states, *self.coordinator.hard_state().groups]):
            group = self.coordinator.group(group_id)
            state = f"{group.state.value}, generation {group.generation}" if group is not None else "Dead"
            if self.states.get(group_id, "Dead") != state:
                out.append(f"{group_id} is {state}")
            self.states[group_id] = state
        return out


def play(text: str) -> str:
    """The scenario with the outcome of each line."""
    return perform(text)[0]


def perform(text: str) -> tuple[str, set[tuple[str, str]]]:
    """The scenario with the outcome of each line, and the pairs (state of the group, request) that occurred."""
    run, out, started = Run(settings=settings_of({})), [], False
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        out.append(line)
        words, values = read(line)
        if not words:
            continue
        if words[0] == "settings":
            run.settings = settings_of(values)
        elif words[0] == "topics":
            run.topics = {name: int(count) for name, count in values.items()}
        else:
            if not started:
                run.start()
                started = True
            out += [f"    {shown}" for shown in act(run, words, values)]
    return "\n".join(out) + "\n", run.covered


def read(line: str) -> tuple[list[str], Values]:
    """The words of a line, and the values of its name=value words; nothing for a comment."""
    words = [] if line.startswith("#") else line.split()
    values = dict(word.split("=", 1) for word in words if "=" in word)
    for name in {"reason", "metadata"} & values.keys():
        values[name] = values[name].replace("_", " ")
    return words, values


def pairs(run: Run, api: str, values: Values) -> set[tuple[str, str]]:
    """(state of the group, request) for every group of the request."""
    if api == "ListGroups":
        about = {*run.states, "g"}
    else:
        about = set(values.get("groups", values.get("group", "g")).split(","))
    kind = f"{api} {_kind_of_member(run, values)}" if api in OF_MEMBERS else api
    return {(run.state(group_id), kind) for group_id in about}


def _kind_of_member(run: Run, values: Values) -> str:
    """An id is known if this broker has given it out."""
    member_id = values.get("member", "")
    if not member_id:
        return "without id"
    number = member_id.rpartition("-")[2]
    return "known" if len(number) == 1 and 0 <= ord(number) - ord("A") < run.ids else "unknown"


def settings_of(values: Values) -> GroupSettings:
    given = {name.replace(".", "_"): int(value) for name, value in values.items()}
    return GroupSettings(
        **{"group_initial_rebalance_delay_ms": 0, "offsets_retention_check_interval_ms": 86_400_000, **given}
    )


def act(run: Run, words: list[str], values: Values) -> list[str]:
    if words[0] == "wait":
        return run.let_time_pass(millis(words[1]))
    if words[0] == "restart":
        run.now_ms = millis(words[1])
        return run.start()
    if words[0] == "history":
        return run.history(words[1] if len(words) > 1 else "g")
    at_ms = millis(words[0])
    passed = run.let_time_pass(at_ms)
    if words[1] == "given":
        return passed + run.given(words[2], [word for word in words[3:] if "=" not in word], values)
    if words[1] == "ended":
        return passed + run.end(words[2], values)
    if words[1] == "topic_deleted":
        return passed + run.delete_topic(words[2])
    return passed + run.request(words[1], words[2], int(words[3].removeprefix("v")), values)


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
