"""The parts of `make durability`: each breaks a broker in one way, many times, and verifies its promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

# run(directory, seed, rounds, report): break a broker `rounds` times in an empty directory, and return figures to print.
# Raises Violation. All processes end with the call.
Run = Callable[[Path, int, int, Callable[[str], None]], Mapping[str, object]]


class Violation(Exception):
    """A promise is broken. The text starts with the round."""


class Part(NamedTuple):
    module: str  # in this package; it has the function `run`
    rounds: int  # of a long run
    about: str
    in_memory: bool = False  # works on a file system in memory if there is one, as it needs no real syncs

    def run(self, directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> Mapping[str, object]:
        run = cast(Run, import_module(f"tests.durability.{self.module}").run)
        return run(directory, seed, rounds, report)


PARTS = {
    "kills": Part("cycles", 100, "kill -9 under producers, a committer and a group"),
    "consumer-groups": Part("consumer_groups", 100, "kill -9 under heartbeats and commits of a consumer group"),
    "transactions": Part("transactions.cycles", 100, "kill -9 under transactions and their offsets"),
    "transaction-steps": Part(
        "transactions.steps", 1000, "kill -9 at each change of a file in a transaction", in_memory=True
    ),
    "delivery": Part(
        "delivery", 5, "kill -9 of broker and client under a million records, for each delivery guarantee"
    ),
    "damage": Part("damage", 500, "damaged files, with and without --accept-loss", in_memory=True),
    "bitrot": Part("bitrot", 1000, "flips and cuts in segments and indexes, live and at rest", in_memory=True),
    "replacement": Part("replacement", 50, "a data directory that is replaced under a running broker", in_memory=True),
    "rescue": Part("rescue", 29, "damaged stores that no start takes, and `kgctl broker rescue`"),
    "missing-store": Part("missing_store", 20, "segments without a store", in_memory=True),
    "connections": Part("connections", 15, "5,000 clients that end behind parked requests, and hosts that vanish"),
    "tls": Part("tls", 10, "damaged TLS conversations beside answers of 100 MB"),
    "longwork": Part("longwork", 1000, "a million committed offsets, and how long other clients wait meanwhile"),
    "descriptors": Part("descriptors", 2, "thousands of partitions and few files that a broker may open"),
    "many-partitions": Part("many_partitions", 5, "starts with 20,000 written partitions after kill -9"),
}
