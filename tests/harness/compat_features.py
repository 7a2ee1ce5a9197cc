"""Invocations of kafka-features, in order: each leaves levels that the next one finds."""

from __future__ import annotations

import re

from tests.harness.commandline import Kgctl

CASES = [
    line.split()
    for line in """
describe
upgrade --feature share.version=1
upgrade --feature share.version=0
upgrade --feature share.version=-1
upgrade --feature share.version=7 --feature nope=1
upgrade --feature transaction.version=1
downgrade --feature transaction.version=1
describe
upgrade --feature transaction.version=2 --feature share.version=1
downgrade --feature share.version=0 --dry-run
disable --feature share.version --dry-run
disable --feature share.version --feature transaction.version --dry-run
disable --feature a --feature b --feature share.version --feature transaction.version --feature zz
disable --feature share.version
disable --feature nope
downgrade --feature share.version=0 --unsafe
downgrade --feature share.version=1
downgrade --feature share.version=-1
upgrade --metadata 4.1-IV1 --dry-run
upgrade --metadata 3.9 --dry-run
upgrade --metadata 9.9
upgrade --metadata 4.0.1 --feature metadata.version=25
downgrade --metadata 3.9-IV0 --dry-run
upgrade
disable
upgrade --feature share.version
upgrade --feature share.version=x
upgrade --feature share.version=+1
upgrade --feature share.version=40000
upgrade --feature =1
upgrade --feature share.version=1 --feature share.version=1
""".strip().splitlines()
]


def reset(servers: str) -> None:
    """The levels that a new broker has."""
    kgctl = Kgctl(servers)
    for level in ("share.version=0", "transaction.version=2"):
        assert kgctl("cluster", "set-feature", level, "--downgrade", "--execute", "--no-journal").exit_code == 0


def shape(text: str) -> str:
    """The epoch counts all changes of a cluster."""
    return re.sub(r"Epoch: \d+", "Epoch: N", text)
