"""Random argument lists for Kafka's tools and `kgctl compat`: right ones, wrong ones, and what nobody would write.

`python -m tests.harness.compat_fuzz --lists 300 --seed 1` compares them on a Kafka and on our broker.
"""

from __future__ import annotations

import argparse
import contextlib
import random
from collections.abc import Callable, Iterator, Sequence

from kgctl.compat.tool import DIALECTS
from kgctl.model.changes import TopicChange
from tests.harness import clusters, compat_acls, compat_state
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.compat_configs import Case
from tests.harness.compat_state import LONG, SMALL, WIDE, Differences
from tests.harness.reference_kafka import ReferenceKafka
from tests.harness.tool_server import ToolServer

Words = Sequence[Sequence[str]]

_GROUPS = ["empty", "live", "static", "idle", "both-a", "absent-b", "with a blank, and a comma", "doomed", ""]
_TOPICS = [SMALL, WIDE, LONG, "absent"]
_ODD = ["", "x", "-1", "1.5", "--bogus", "-x", "--", "a=b", "[", "\u00e9"]
_STRATEGIES: Words = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    *(["--to-offset", value] for value in ("0", "3", "70", "-5", "x", "99999999999999999999", "+7")),
    *(["--shift-by", value] for value in ("1", "-7", "=3", "0", "1e3")),
    *(["--by-duration", value] for value in ("P1D", "PT1H", "P3650D", "1h", "-PT1H", "P1DT", "")),
    *(
        ["--to-datetime", value]
        for value in ("2020-01-01T00:00:00.000", "2020-01-01T00:00:00.000Z", "2020-1-1", "2099-12-31T23:59:59.999", "")
    ),
]
_PLACES: Words = [
    ["--all-topics"],
    *(
        ["--topic", place]
        for place in (SMALL, f"{SMALL}:0", f"{SMALL}:0,2", f"{SMALL}:9", f"{SMALL}:", f"{WIDE}:1:2", "absent", ":", "")
    ),
]


def _groups(chance: random.Random) -> Case:
    named: Words = [*(["--group", name] for name in _GROUPS), ["--all-groups"]]
    action = chance.choice(["list", "describe", "describe", "reset", "reset", "delete", "offsets", "none"])
    if action == "list":
        extras: Words = [
            ["--state"],
            ["--type"],
            *(["--state", value] for value in ("empty", "Stable,Dead", "sleepy", ",", "")),
            *(["--type", value] for value in ("classic", "Consumer", "odd", "")),
            ["--verbose"],
            ["--members"],
        ]
        return ["--list", *_some(chance, extras, 2), *_some(chance, named, 1, 0.1)]
    if action == "describe":
        views: Words = [["--members"], ["--state"], ["--offsets"], ["--verbose"], ["--timeout", "9000"]]
        return ["--describe", *_some(chance, named, 2, 0.9), *_some(chance, views, 2)]
    if action == "reset":
        mode = chance.choice([["--dry-run"], ["--dry-run"], ["--execute"], [], ["--dry-run", "--execute"]])
        # Two groups in one bucket of a HashMap come in an order of their own: "static" and "empty".
        others = [words for words in named[:-1] if "static" not in words]
        chosen = [*_some(chance, others, 2, 0.9), *_some(chance, _PLACES, 1, 0.9)]
        return [
            "--reset-offsets",
            *chosen,
            *_some(chance, _STRATEGIES, 1, 0.9),
            *mode,
            *_some(chance, [["--export"]], 1),
        ]
    if action == "delete":
        gone: Words = [["--group", name] for name in ("live", "absent-b", "doomed", "doomed-too")]
        return ["--delete", *_some(chance, gone, 3, 0.9)]
    if action == "offsets":
        return ["--delete-offsets", *_some(chance, named[:-1], 1, 0.9), *_some(chance, _PLACES[1:], 2, 0.9)]
    return _some(chance, [*named, *_PLACES, *_STRATEGIES], 3)


def _topics(chance: random.Random) -> Case:
    reports = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions")
    shown: Words = [
        *([f"--{report}"] for report in (*reports, "unavailable-partitions", "topics-with-overrides")),
        ["--exclude-internal"],
        ["--if-exists"],
        *(["--topic", value] for value in (*_TOPICS, "t-.*", f"{SMALL}|{WIDE}", "t-small,t-wide", "(", "")),
        ["--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
        ["--topic-id", "no"],
    ]
    action = chance.choice(["list", "describe", "describe", "create", "create", "alter", "delete", "none"])
    if action in ("list", "describe"):
        return [f"--{action}", *_some(chance, shown, 3)]
    if action == "create":
        options: Words = [
            *(["--partitions", value] for value in ("1", "2", "0", "-1", "x", "99999999999")),
            *(["--replication-factor", value] for value in ("1", "3", "0", "-1", "32768")),
            *(["--replica-assignment", value] for value in ("1,1", "1:1", "9", "1,", "x", "")),
            *(["--config", value] for value in ("retention.ms=1000", "retention.ms=x", "no.such=1", "x", "a=b=c", "=")),
            ["--if-not-exists"],
            ["--if-exists"],
        ]
        name = chance.choice([["--topic", "new"], ["--topic", "new"], ["--topic", SMALL], ["--topic", "a/b"], []])
        # The tool knows all settings of topics, so it looks at their values before other values; kgctl asks the broker.
        chosen = options[17:] if chance.random() < 0.5 else [*options[:17], *options[23:]]
        return ["--create", *name, *_some(chance, chosen, 3)]
    if action == "alter":
        few: Words = [
            *(["--partitions", value] for value in ("1", "0", "-1", "x")),
            ["--if-exists"],
            ["--config", "a=b"],
        ]
        return ["--alter", *_some(chance, [["--topic", name] for name in _TOPICS], 1, 0.9), *_some(chance, few, 2, 0.9)]
    if action == "delete":
        return ["--delete", *_some(chance, [["--topic", "absent"], ["--topic", "[ab"], ["--if-exists"]], 3, 0.9)]
    return _some(chance, shown, 3)


def _configs(chance: random.Random) -> Case:
    kinds = ("topics", "brokers", "users", "clients", "ips", "client-metrics", "broker-loggers", "galaxies", "groups")
    entities: Words = [
        *(["--topic", value] for value in (LONG, "absent", "", "a/b")),
        *(["--broker", value] for value in ("1", "9", "one", "")),
        *(["--user", value] for value in ("alice", "nobody", "")),
        *(["--client", value] for value in ("c1", "")),
        *(["--ip", value] for value in ("127.0.0.1", "999.0.0.1", "")),
        ["--user-defaults"],
        ["--client-defaults"],
        ["--broker-defaults"],
        ["--ip-defaults"],
        *(["--entity-type", kind] for kind in kinds),
        *(["--entity-type", "topics", "--entity-name", value] for value in (LONG, "absent")),
        ["--entity-type", "users", "--entity-default"],
        ["--entity-type", "brokers", "--entity-name", "1"],
        ["--entity-name", LONG],
        ["--entity-default"],
    ]
    changes: Words = [
        *(
            ["--add-config", value]
            for value in ("retention.ms=soon", "retention.ms", "a=b", "consumer_byte_rate=x", "a b=c", "=", "", "[x=1")
        ),
        *(["--delete-config", value] for value in ("segment.bytes", "no.such", "consumer_byte_rate", ",", "")),
    ]
    action = chance.choice(["--describe", "--describe", "--alter", "--alter", None])
    found = [] if action is None else [action]
    found += _some(chance, entities, 2, 0.9)
    found += _some(chance, changes, 2, 0.9 if action == "--alter" else 0.1)
    return found + _some(chance, [["--all"]], 1)


def _transactions(chance: random.Random) -> Case:
    action = chance.choice(
        ["list", "describe", "describe-producers", "find-hanging", "abort", "none", "forceTerminateTransaction"]
    )
    options: Words = [
        *(["--topic", value] for value in (LONG, SMALL, "absent", "a/b", "")),
        *(["--partition", value] for value in ("0", "9", "-1", "x", "")),
        *(["--transactional-id", value] for value in ("tx-done", "tx-absent", "")),
        *(["--broker-id", value] for value in ("1", "9", "x")),
        *(["--duration-filter", value] for value in ("-1", "86400000", "x", "0.5")),
        *(["--max-transaction-timeout", value] for value in ("0", "900000", "x")),
        *(["--start-offset", value] for value in ("3", "x", "-1")),
        *(["--producer-id", value] for value in ("99", "x")),
        *(["--producer-epoch", value] for value in ("0", "99999", "x")),
        *(["--coordinator-epoch", value] for value in ("0", "x")),
        ["--transactional-id-pattern", "tx.*"],
        ["--transactional-id-pattern", "("],
    ]
    fitting = {
        "list": (8, 11),
        "describe": (6, 7),
        "describe-producers": (0, 6),
        "find-hanging": (0, 6),
        "abort": (0, 6),
    }
    given = [] if action == "none" else [action]
    if action in ("describe-producers", "abort") and chance.random() < 0.7:
        given += [*options[chance.choice([0, 1, 2])], *options[chance.choice([5, 6])]]
        return given + _some(chance, options[11:], 2)
    return given + _some(chance, options, 2 if action in fitting else 1, 0.8)


def _acls(chance: random.Random) -> Case:
    options: Words = [
        *(["--topic", value] for value in ("t", "p-x", "absent", "*", "")),
        *(["--group", value] for value in ("g", "*")),
        ["--cluster"],
        ["--transactional-id", "x"],
        ["--delegation-token", "d"],
        ["--user-principal", "User:z"],
        *(["--resource-pattern-type", value] for value in ("match", "any", "prefixed", "literal", "odd", "")),
        *(["--principal", value] for value in ("User:a", "nobody", ":", "")),
        *(["--allow-principal", value] for value in ("User:a", "nobody", "User:*")),
        ["--deny-principal", "User:b"],
        ["--allow-host", "10.0.0.1"],
        ["--deny-host", "*"],
        *(["--operation", value] for value in ("Read", "any", "Dance", "describe_configs", "")),
        ["--producer"],
        ["--consumer"],
        ["--idempotent"],
    ]
    action = chance.choice(["--list", "--list", "--list", "--add", None])
    least = options[:21] if action == "--list" else options
    return ([] if action is None else [action]) + _some(chance, least, 3, 0.9)


TOOLS: dict[str, Callable[[random.Random], Case]] = {
    "consumer-groups": _groups,
    "topics": _topics,
    "configs": _configs,
    "transactions": _transactions,
    "acls": _acls,
}


def _some(chance: random.Random, choices: Words, most: int, likely: float = 0.5) -> list[str]:
    """Up to `most` of these, none of them with a probability of 1 - `likely`."""
    if chance.random() > likely:
        return []
    return [word for given in chance.sample(choices, min(chance.randint(1, most), len(choices))) for word in given]


def lists(seed: int, count: int, tools: Sequence[str] = tuple(TOOLS)) -> Iterator[tuple[str, Case]]:
    """Tools in turn, each with an argument list; the same ones for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        tool = tools[number % len(tools)]
        case = TOOLS[tool](chance)
        if chance.random() < 0.1:
            case.insert(chance.randint(0, len(case)), chance.choice(_ODD))
        if chance.random() < 0.05 and case:
            del case[chance.randrange(len(case))]
        yield tool, case


def compare(
    cluster: Cluster, server: ToolServer, dialect: str, tool: str, case: Case, differences: Differences
) -> None:
    """Run both tools on the same state, and note stdout and exit codes where they differ."""
    words = ["--bootstrap-server", cluster.bootstrap_servers, *case]
    _restore(cluster, tool, case)
    theirs = server.run(tool, *words)
    left = str(compat_acls.restored(cluster)) if tool == "acls" else ""
    _restore(cluster, tool, case)
    ours = Kgctl()("compat", "--ak-exit-codes", "--dialect", dialect, f"kafka-{tool}", *words)
    found = [theirs.stdout, ours.stdout]
    if tool == "acls":
        # The tool has them in sets, whose order is different in each JVM.
        found = [
            f"{compat_acls.shape(theirs.stdout)}{left}",
            f"{compat_acls.shape(ours.stdout)}{compat_acls.restored(cluster)}",
        ]
    differences.add(f"{dialect}: {tool} {case}", (theirs.code, found[0]), (ours.exit_code, found[1]))


def _restore(cluster: Cluster, tool: str, case: Case) -> None:
    if tool == "consumer-groups" and not {"--execute", "--delete", "--delete-offsets"}.isdisjoint(case):
        compat_state.commit_all(cluster)
    if tool == "topics" and "--create" in case:
        with Kgctl(cluster.bootstrap_servers).admin() as admin:
            admin.delete_topics([TopicChange("new", None, None)])


def _started(kind: str) -> contextlib.AbstractContextManager[Cluster]:
    return ReferenceKafka(compat_acls.AUTHORIZED) if kind == "kafka" else clusters.start(kind)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.compat_fuzz", description=__doc__)
    parser.add_argument("--lists", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--cluster", choices=("kafka", "kgctl"), default="kafka")
    given = parser.parse_args()
    differences = Differences()
    with _started(given.cluster) as cluster, compat_state.prepared(cluster):
        if "acls" in given.tools:
            compat_acls.restored(cluster)
        for dialect, version in DIALECTS.items():
            with ToolServer(version) as server:
                for tool, case in lists(given.seed, given.lists, given.tools.split(",")):
                    known = len(differences)
                    compare(cluster, server, dialect, tool, case, differences)
                    for difference in differences[known:]:
                        print(difference, flush=True)
    print(f"{len(differences)} of {given.lists * len(DIALECTS)} differ")


if __name__ == "__main__":
    main()
