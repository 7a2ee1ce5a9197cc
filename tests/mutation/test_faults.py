"""Each fault applies to the source, so that `make mutate` is meaningful."""

from __future__ import annotations

from pathlib import Path

from tests.mutation.__main__ import FAULTS, ROOT, planted
from tests.mutation.faults import Fault


def test_each_fault_applies_and_its_tests_exist() -> None:
    wrong = [problem for fault in FAULTS if (problem := problem_of(fault))]
    assert not wrong, "\n".join(wrong)


def problem_of(fault: Fault) -> str | None:
    text = (ROOT / fault.file).read_text()
    try:
        if planted(text, fault) == text:
            return f"{fault.name}: changes nothing"
    except (ValueError, SyntaxError, OSError) as error:
        return f"{fault.name}: {error}"
    missing = [test for test in fault.tests if not Path(ROOT, test).exists()]
    return f"{fault.name}: no {missing}" if missing else None


def test_names_of_faults_are_unique() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
