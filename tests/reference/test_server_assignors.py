"""Kafka's own target assignments and ours are the same, in groups that nobody has seen before."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests import harness
from tests.broker.cores.groups.assignors.vectors import read
from tests.harness.reference_kafka import Jars, KafkaTools

SOURCES = Path(harness.__file__).parent / "java"
GROUPS = 2000


@pytest.mark.parametrize("program", ["ServerAssignorVectors", "ShareAssignorVectors"])
def test_random_groups_get_kafkas_target_assignments(tools: KafkaTools, program: str) -> None:
    first = random.randrange(10**9)
    command = Jars().command(str(SOURCES / f"{program}.java"), first, GROUPS, heap="384m")
    played = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    vectors = list(read(played.stdout.splitlines()))
    assert len(vectors) == 6 * GROUPS
    differing = [vector for vector in vectors if vector.computed() != vector.records]
    assert differing == [], f"first seed {first}"
