"""How pytest-xdist distributes the tests: file by file, long ones first, and all tests with Spark to one worker."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

# Tests that share a Spark session: another worker would start one of its own.
SPARK = re.compile(
    r"tests/kgctl/pipelines/"
    r"(archive/test_on_both_clusters|incidents|jobs|source|spark|tables/test_(spark|schema_versions)|transforms|views)\b"
)
# The last file should be a short one, so that no worker waits for another.
LONG = (
    "tests/kgctl/pipelines/",
    "tests/reference/",
    "tests/durability/",
    "tests/clients/",
    "tests/test_packaging.py",
    "tests/kgctl/",
    "tests/broker/storage/",
)


def rank(nodeid: str) -> tuple[bool, int]:
    """Tests with a low rank start first."""
    long = next((number for number, folder in enumerate(LONG) if nodeid.startswith(folder)), len(LONG))
    return SPARK.match(nodeid) is None, long


class FileScheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "spark" if SPARK.match(nodeid) else super()._split_scope(nodeid)
