"""Each fault still has its place in the source, so that `make mutate` means what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOT, planted
from tests.mutation.faults import FAULTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_applies_and_the_tests_that_shall_catch_it_exist(fault: Fault) -> None:
    text = (ROOT / "broker" / fault.path).read_text()
    assert planted(text, fault) != text
    assert all(Path(ROOT, test).exists() for test in fault.tests)


def test_no_two_faults_have_one_name() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
