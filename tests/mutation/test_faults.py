"""Each fault applies to the source, so that `make mutate` is meaningful."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import FAULTS, ROOT, planted
from tests.mutation.faults import Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_applies_and_its_tests_exist(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    assert planted(text, fault) != text
    assert all(Path(ROOT, test).exists() for test in fault.tests)


def test_names_of_faults_are_unique() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
