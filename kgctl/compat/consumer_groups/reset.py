"""`--reset-offsets`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from broker.light_dataclasses import dataclass
from kgctl.client.admin import offsets
from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.client.net.errors import KgctlError
from kgctl.compat.consumer_groups.describe import all_groups
from kgctl.compat.consumer_groups.facts import Group, committed, describe, log_offsets, topic_failure
from kgctl.compat.consumer_groups.moments import before_ms, moment_ms
from kgctl.compat.consumer_groups.options import STRATEGIES
from kgctl.compat.consumer_groups.plan_file import Plan, exported, read_plan
from kgctl.compat.consumer_groups.release import Release
from kgctl.compat.consumer_groups.topics import by_form, named_partitions
from kgctl.compat.hash_order import in_hash_order, of_described_topics
from kgctl.compat.java_errors import JavaError, java_error
from kgctl.compat.options import Arguments, UsageError, listed
from kgctl.compat.tool import Ended, Session, columns, ended_by
from kgctl.exit_codes import NOT_FOUND, PARTLY_FAILED, WRONG_STATE
from kgctl.journal.making import of_commits
from kgctl.journal.results import Outcome
from kgctl.model.groups import EMPTY_STATES
from kgctl.model.topic_partition import TopicPartition

_ROW = columns(30, 30, 10, 15)


def run_reset(session: Session, arguments: Arguments, release: Release) -> Ended:
    names = all_groups(session) if arguments.has("all-groups") else arguments.values("group")
    found = describe(session, names, release.describe_version)
    if arguments.has("execute"):
        session.host.may_change(names)
    reset = _Reset(session, arguments, release)
    plan: Plan = {}
    for name in in_hash_order(found, copied=True):
        plan[name] = reset.of_group(name, found[name])
    ordered = {name: plan[name] for name in in_hash_order(plan)}
    if arguments.has("export"):
        session.out(exported(ordered, with_groups=len(arguments.values("group")) != 1) + "\n")
    else:
        _show(session, ordered, release)
    if reset.failures and len(reset.failures) < len(found):
        return Ended(PARTLY_FAILED, 0)
    return ended_by(reset.failures)


def _show(session: Session, plan: Plan, release: Release) -> None:
    if plan:
        session.out("\n" + _ROW("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
    for group, moved in plan.items():
        for key, offset in moved.items():
            session.out(release.reset_line + _ROW(group, key.topic, key.partition, offset))
    session.out(release.line_end)


@dataclass(slots=True)
class _Reset:
    """`failures`: what was wrong with groups that the tool skips."""

    session: Session
    arguments: Arguments
    release: Release
    failures: list[JavaError]

    def __init__(self, session: Session, arguments: Arguments, release: Release) -> None:
        self.session, self.arguments, self.release = session, arguments, release
        self.failures = []

    def of_group(self, name: str, found: Group | JavaError) -> dict[TopicPartition, int]:
        """The new offsets of a group, committed with --execute; none if it is skipped. Raises JavaError."""
        if isinstance(found, JavaError):
            if found.name != "GROUP_ID_NOT_FOUND" or not self.release.reset_hides_cause:
                raise found.within().rethrown()
        elif found.state not in EMPTY_STATES:
            about = f"Assignments can only be reset if the group '{name}' is inactive, but the current state is {found.state}."
            self._skip(about, WRONG_STATE)
            return {}
        moved = self._targets(name, self._scope(name))
        if self.arguments.has("execute"):
            self._commit(name, moved)
        return moved

    def _skip(self, message: str, code: int) -> None:
        self.session.out(f"\nError: {message}\n")
        self.failures.append(JavaError("skipped", message, exit_code=code))

    # --- scope ---

    def _scope(self, group: str) -> list[TopicPartition]:
        if self.arguments.has("all-topics"):
            return in_hash_order(committed(self.session, group))
        if not self.arguments.has("topic"):
            if self.arguments.has("from-file"):
                return []
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        named, whole = by_form(self.arguments.values("topic"))
        return [key for topic in named for key in named_partitions(topic)] + self._all_partitions(whole)

    def _all_partitions(self, topics: list[str]) -> list[TopicPartition]:
        if not topics:
            return []
        answer = self.session.run(self.session.admin.cluster.metadata(topics), "describeTopics")
        partitions = {}
        for topic in answer.topics:
            if topic.error_code:
                raise self._passed_on(topic_failure(topic.name or "", topic.error_code))
            numbers = sorted(row.partition_index for row in topic.partitions)
            partitions[topic.name or ""] = [TopicPartition(topic.name or "", number) for number in numbers]
        return [key for topic in of_described_topics(partitions) for key in partitions[topic]]

    def _passed_on(self, error: JavaError) -> JavaError:
        """How the tool reports the error of a future: as its message, or with all causes."""
        if self.release.reset_hides_cause:
            return JavaError(error.kind, error.message, error.name, error.exit_code)
        return error.within().rethrown()

    # --- strategies ---

    def _targets(self, group: str, scope: list[TopicPartition]) -> dict[TopicPartition, int]:
        given = self.arguments
        if given.has("to-offset"):
            offset = given.number("to-offset") or 0
            return self._clamped(dict.fromkeys(scope, offset))
        if given.has("to-earliest"):
            return _ordered(log_offsets(self.session, scope, EARLIEST))
        if given.has("to-latest"):
            return _ordered(log_offsets(self.session, scope, LATEST))
        if given.has("shift-by"):
            return self._clamped(self._shifted(group, scope, given.number("shift-by") or 0))
        if given.has("to-datetime"):
            return self._at_time(scope, moment_ms(given.value("to-datetime") or ""))
        if given.has("by-duration"):
            now_ms = time.time_ns() // 1_000_000
            return self._at_time(scope, before_ms(given.value("by-duration") or "", now_ms))
        if given.has("from-file"):
            return self._from_file(group, given.value("from-file") or "")
        if given.has("to-current"):
            return self._current(group, scope)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed(STRATEGIES)}]")

    def _shifted(self, group: str, scope: list[TopicPartition], by: int) -> dict[TopicPartition, int]:
        commits = committed(self.session, group)
        shifted = {}
        for key in scope:
            if key not in commits:
                raise UsageError(f"Cannot shift offset for partition {key} since there is no current committed offset")
            shifted[key] = (commits[key].offset or 0) + by
        return shifted

    def _at_time(self, scope: list[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        found = log_offsets(self.session, scope, timestamp_ms)
        later = in_hash_order(key for key, offset in found.items() if offset < 0)
        for key in later:
            self.session.out(
                f"\nWarn: Partition {key.partition} from topic {key.topic} is empty. "
                "Falling back to latest known offset.\n"
            )
        found |= log_offsets(self.session, later, LATEST)
        return _ordered({key: found[key] for key in scope})

    def _from_file(self, group: str, path: str) -> dict[TopicPartition, int]:
        try:
            plan = read_plan(path, self.arguments.values("group"))
        except JavaError as error:
            raise error.rethrown() from error
        if group not in plan:
            self._skip(f"No reset plan for group {group} found", NOT_FOUND)
            return {}
        return self._clamped(plan[group])

    def _current(self, group: str, scope: list[TopicPartition]) -> dict[TopicPartition, int]:
        commits = committed(self.session, group)
        old = {key: commits[key].offset or 0 for key in scope if key in commits}
        new = log_offsets(self.session, [key for key in scope if key not in commits], LATEST)
        if old:
            return _ordered(old | new)
        return {key: new[key] for key in in_hash_order(in_hash_order(new), copied=True)}

    def _clamped(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        starts, ends = log_offsets(self.session, wanted, EARLIEST), log_offsets(self.session, wanted, LATEST)
        moved = {}
        for key, offset in wanted.items():
            moved[key] = min(max(offset, starts[key]), ends[key])
            if moved[key] != offset:
                side = "higher than latest" if moved[key] < offset else "lower than earliest"
                self.session.err(
                    f"WARN New offset ({offset}) is {side} offset for topic partition {key}. "
                    f"Value will be set to {moved[key]}\n"
                )
        return _ordered(moved)

    # --- execution ---

    def _commit(self, group: str, moved: Mapping[TopicPartition, int]) -> None:
        if not moved:
            return
        done = self.session.change_groups(
            "reset-offsets",
            [group],
            lambda states: [of_commits(state, moved) for state in states.values()],
            lambda: self.session.run(offsets.commit(self.session.admin.cluster, group, moved), "findCoordinator"),
            lambda done: [Outcome.of((group, *key, None), done.get(key)) for key in moved],
            "findCoordinator",
        )
        errors = {key: error for key, error in done.items() if isinstance(error, KgctlError)}
        if errors:
            raise self._passed_on(java_error(next(iter(errors.values())), call="findCoordinator"))


def _ordered(offsets_of: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    keys: Iterable[TopicPartition] = in_hash_order(offsets_of)
    return {key: offsets_of[key] for key in keys}
