"""Kafka's coordinator and ours compute the same hashes, of topics that nobody has seen before."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from broker.cores.groups.consumer.metadata_hash import metadata_hash
from tests import harness
from tests.broker.cores.groups.consumer.hash_vectors import read
from tests.harness.reference_kafka import Jars, KafkaTools

SOURCE = Path(harness.__file__).parent / "java" / "MetadataHashVectors.java"
GROUPS = 2000


def test_random_topics_get_kafkas_hashes(tools: KafkaTools) -> None:
    first = random.randrange(10**9)
    command = Jars().command(str(SOURCE), first, GROUPS, flags=["-Dstdout.encoding=UTF-8"])
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)
    vectors = list(read(printed.stdout.splitlines()))
    assert len(vectors) == GROUPS
    differing = [vector.ids for vector in vectors if metadata_hash(vector.ids, vector) != vector.expected]
    assert differing == [], f"first seed {first}"
