"""Golden scenarios beside a real Kafka: which are played, and what happens without a Kafka."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.broker.cores.groups.traces import TRACES
from tests.broker.cores.groups.traces_on_kafka import KNOWN, shape_of
from tests.harness import ROOT


def play(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.broker.cores.groups.traces_on_kafka", *words]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=250, check=False
    )


def test_without_java_it_skips_with_the_reason() -> None:
    done = play("generations", PATH="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "skipped: no real Kafka here: no java on PATH"


def test_a_scenario_ends_at_the_last_step_that_kafka_supports() -> None:
    limits = shape_of("group_max_size")
    assert limits.settings == (("group.initial.rebalance.delay.ms", "500"), ("group.max.size", "1"))
    assert limits.seconds == 2.0
    assert shape_of("generations").settings == (("group.initial.rebalance.delay.ms", "500"),)
    # What follows a restart of our coordinator is left out, with the settings of that restart.
    assert shape_of("group_max_size_lowered").settings == shape_of("generations").settings
    assert shape_of("recovery_of_retention").seconds == 0


def test_known_differences_name_existing_scenarios() -> None:
    assert KNOWN.keys() <= {path.stem for path in TRACES.glob("*.txt")}


@pytest.mark.reference
@pytest.mark.timeout(300)
def test_a_real_kafka_answers_as_the_golden_scenarios() -> None:
    done = play("generations", "group_max_size", "find_coordinator")
    if "skipped" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 scenarios played" in done.stdout
