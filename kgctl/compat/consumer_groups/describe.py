"""`--list` and `--describe`: offsets, members and state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgctl.client.admin.offsets import LATEST
from kgctl.compat.consumer_groups.facts import Group, Member, committed, describe, list_groups, log_offsets
from kgctl.compat.consumer_groups.release import Release
from kgctl.compat.hash_order import as_java_sorts, in_hash_order
from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import Arguments, UsageError
from kgctl.compat.tool import Ended, Session, columns, ended_by
from kgctl.exit_codes import NOT_FOUND
from kgctl.model.groups import REBALANCING, Committed
from kgctl.model.topic_partition import TopicPartition

NOTHING = "-"
_OFFSETS = [
    "GROUP",
    "TOPIC",
    "PARTITION",
    "LEADER-EPOCH",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
]
_MEMBERS = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
_ASSIGNMENTS = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]


# --- list ---


def run_list(session: Session, arguments: Arguments, release: Release) -> Ended:
    if not arguments.has("type", "state"):
        session.out("".join(f"{group}\n" for group in all_groups(session)))
        return Ended(0, 0)
    types = _parsed(arguments.value("type"), release.types, "types")
    states = _parsed(arguments.value("state"), release.states, "state")
    found = {row[0]: row for row in list_groups(session, states, types)}
    shown = [True, arguments.has("type"), arguments.has("state")]
    width = max([15, *map(len, found)]) + 10
    row = columns(*([width, 20, 20][: sum(shown)]))
    for cells in [("GROUP", "TYPE", "STATE"), *(found[group] for group in in_hash_order(found))]:
        session.out(row(*(cell or "Unknown" for cell, is_shown in zip(cells, shown, strict=True) if is_shown)) + "\n")
    return Ended(0, 0)


def all_groups(session: Session) -> list[str]:
    """The ids of all consumer groups. Raises JavaError as the tool does."""
    try:
        return in_hash_order(group for group, _, _ in list_groups(session))
    except JavaError as error:
        raise error.rethrown() from error


def _parsed(given: str | None, known: Sequence[str], what: str) -> list[str]:
    """The names, spelled as Kafka spells them. Raises UsageError."""
    spelled = {name.lower(): name for name in known}
    names = [name.strip().lower() for name in given.split(",")] if given else []
    if any(name not in spelled for name in names):
        raise UsageError(f"Invalid {what} list '{given}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [spelled[name] for name in names]


# --- describe ---


def run_describe(session: Session, arguments: Arguments, release: Release) -> Ended:
    names = all_groups(session) if arguments.has("all-groups") else arguments.values("group")
    found = describe(session, names, release.describe_version)
    groups: dict[str, Group] = {}
    for name in in_hash_order(found, copied=True):
        group = found[name]
        if isinstance(group, JavaError):
            raise group.within()
        groups[name] = group
    is_verbose = arguments.has("verbose")
    ordered = [groups[name] for name in as_java_sorts(groups)]
    if arguments.has("members"):
        for group in ordered:
            _show_members(session, group, release, is_verbose)
    elif arguments.has("state"):
        for group in ordered:
            _show_state(session, group, release, is_verbose)
    else:
        rows = {group.group: _offset_rows(session, group) for group in ordered}
        for group in ordered:
            _show_offsets(session, group, rows[group.group], release, is_verbose and release.has_epochs)
    return ended_by(_missing(group) for group in ordered if group.state == "Dead")


def _missing(group: Group) -> JavaError:
    return JavaError("dead", group.group, "GROUP_ID_NOT_FOUND", NOT_FOUND)


def _is_shown(session: Session, group: Group, rows: int) -> bool:
    """Say what is to say about the state; whether rows follow."""
    if group.state == "Dead":
        session.out(f"\nError: Consumer group '{group.group}' does not exist.\n")
        return False
    if group.state == "Empty":
        session.err(f"\nConsumer group '{group.group}' has no active members.\n")
    elif group.state in REBALANCING:
        session.err(f"\nWarning: Consumer group '{group.group}' is rebalancing.\n")
    return rows > 0


# --- offsets ---


def _offset_rows(session: Session, group: Group) -> list[tuple[str, ...]]:
    """A row per partition: first those of members, the member with most partitions first, then committed ones without."""
    commits = committed(session, group.group)
    rows: list[tuple[str, ...]] = []
    owners = [member for member in group.members if member.assignment]
    for member in sorted(owners, key=lambda member: -len(set(member.assignment))):
        about = (member.member_id, member.host, member.client_id)
        rows += _partition_rows(session, group.group, in_hash_order(member.assignment), commits, about)
    owned = {key for member in owners for key in member.assignment}
    rest = in_hash_order(key for key in in_hash_order(commits) if key not in owned)
    return rows + _partition_rows(session, group.group, rest, commits, (NOTHING,) * 3)


def _partition_rows(
    session: Session,
    group: str,
    partitions: Iterable[TopicPartition],
    commits: Mapping[TopicPartition, Committed],
    about: tuple[str, ...],
) -> list[tuple[str, ...]]:
    by_number = sorted(partitions, key=lambda key: key.partition)
    ends = log_offsets(session, by_number, LATEST)
    rows = []
    for key in in_hash_order(by_number):
        commit = commits.get(key, Committed(None))
        lag = NOTHING if commit.offset is None else ends[key] - commit.offset
        cells = (group, key.topic, key.partition, _or_nothing(commit.leader_epoch), _or_nothing(commit.offset))
        rows.append(tuple(map(str, (*cells, ends[key], lag, *about))))
    return rows


def _or_nothing(value: object) -> object:
    return NOTHING if value is None else value


def _show_offsets(
    session: Session, group: Group, rows: Sequence[tuple[str, ...]], release: Release, with_epoch: bool
) -> None:
    if not _is_shown(session, group, len(rows)):
        return
    widths = {name: max([15, *(len(row[at]) for row in rows)]) for at, name in enumerate(_OFFSETS)}
    fixed = {"PARTITION": 10, "LEADER-EPOCH": 15, "CURRENT-OFFSET": 15, "LOG-END-OFFSET": 15, "LAG": 15}
    shown = [at for at, name in enumerate(_OFFSETS) if with_epoch or name != "LEADER-EPOCH"]
    row = columns(*((widths | fixed)[_OFFSETS[at]] for at in shown[:-1]))
    for cells in (_OFFSETS, *rows):
        session.out("\n" + row(*(cells[at] for at in shown)))
    session.out(release.line_end)


# --- members ---


def _show_members(session: Session, group: Group, release: Release, is_verbose: bool) -> None:
    members = group.members if _is_shown(session, group, len(group.members)) else ()
    cells = [
        (group.group, one.member_id, one.instance_id, one.host, one.client_id, str(len(set(one.assignment))))
        for one in members
    ]
    shown = [at for at in range(6) if at != 2 or any(one.instance_id for one in members)]
    least = (15, 15, 17, 15, 15, 15)
    widths = [max([least[at], *(len(row[at]) for row in cells if at != 5)]) for at in shown]
    row = columns(*widths)
    more = _assignment_columns(members, group.target_epoch, release) if is_verbose else [""] * (len(members) + 1)
    # Also without rows the tool prints the header.
    session.out("\n")
    for line, added in zip((_MEMBERS, *cells), more, strict=False):
        session.out(f"{row(*(line[at] for at in shown))} {added}\n")


def _assignment_columns(members: Sequence[Member], target_epoch: int | None, release: Release) -> list[str]:
    """The header and a text per member."""
    if not release.has_epochs:
        return ["ASSIGNMENT", *(_partitions_only(one.assignment) for one in members)]
    is_mixed = {one.is_upgraded for one in members} >= {True, False}
    cells = [
        (
            str(_or_nothing(one.epoch)),
            _by_topic(one.assignment),
            str(_or_nothing(target_epoch)),
            _by_topic(one.target),
            NOTHING if one.is_upgraded is None else str(one.is_upgraded).lower(),
        )
        for one in members
    ]
    row = columns(15, *(max([20, *(len(line[1]) for line in cells)]), 15, max([20, *(len(line[3]) for line in cells)])))
    return [row(*line[: 5 if is_mixed else 4]) for line in (tuple(_ASSIGNMENTS), *cells)]


def _by_topic(partitions: Iterable[TopicPartition]) -> str:
    numbers: dict[str, set[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, set()).add(number)
    texts = [f"{topic}:{','.join(map(str, sorted(some)))}" for topic, some in numbers.items()]
    return ";".join(as_java_sorts(texts)) or NOTHING


def _partitions_only(partitions: Iterable[TopicPartition]) -> str:
    """Kafka 3.8 and 3.9 leave out the topics, and sort numbers as texts."""
    numbers: dict[str, set[str]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, set()).add(str(number))
    return ", ".join(sorted(f"({','.join(sorted(some))})" for some in numbers.values())) or NOTHING


# --- state ---


def _show_state(session: Session, group: Group, release: Release, is_verbose: bool) -> None:
    if not _is_shown(session, group, 1):
        return
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.node_id})"
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.group, coordinator, group.strategy or release.no_strategy, group.state]
    row = release.state_row(group.group, coordinator)
    if is_verbose and release.has_epochs:
        widths = columns(15, 25)
        ends = (
            widths("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"),
            widths(_or_nothing(group.epoch), _or_nothing(group.target_epoch), len(group.members)),
        )
    else:
        ends = ("#MEMBERS", str(len(group.members)))
    for line, end in zip((header, cells), ends, strict=True):
        session.out(f"\n{row(*line)} {end}")
    session.out("\n")
