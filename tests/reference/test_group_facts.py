"""Kafka's coordinator and ours compute the same hashes and count the same votes, of groups that nobody has seen before."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from broker.cores.groups.metadata_hash import metadata_hash
from tests import harness
from tests.broker.cores.groups.consumer.hash_vectors import read
from tests.broker.cores.groups.consumer.votes import played
from tests.harness.reference_kafka import Jars, KafkaTools

SOURCES = Path(harness.__file__).parent / "java"
GROUPS = 2000


def printed(source: str, first: int) -> list[str]:
    command = Jars().command(str(SOURCES / source), first, GROUPS, flags=["-Dstdout.encoding=UTF-8"])
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)
    return done.stdout.splitlines()


def test_random_votes_choose_kafkas_assignors(tools: KafkaTools) -> None:
    first = random.randrange(10**9)
    lines = printed("AssignorVotes.java", first)
    assert len(lines) == GROUPS
    assert [played(line) for line in lines] == lines, f"first seed {first}"


def test_random_topics_get_kafkas_hashes(tools: KafkaTools) -> None:
    first = random.randrange(10**9)
    vectors = list(read(printed("MetadataHashVectors.java", first)))
    assert len(vectors) == GROUPS
    differing = [vector.ids for vector in vectors if metadata_hash(vector.ids, vector) != vector.expected]
    assert differing == [], f"first seed {first}"
