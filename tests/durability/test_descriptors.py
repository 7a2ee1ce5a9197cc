"""A broker that may open few files serves all partitions; `python -m tests.durability descriptors` tries thousands."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.durability.descriptors import Scenario, Trial

pytest.importorskip("confluent_kafka")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python
def test_a_broker_with_few_descriptors_delivers_everything_and_keeps_running(tmp_path: Path) -> None:
    found = Trial(tmp_path / "data", Scenario(64, 60, 4, 3, batches=2), Random(1)).run()
    assert 0 < int(str(found["descriptors"])) <= 64
