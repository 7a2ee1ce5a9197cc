"""What runs of the pipelines show of their progress."""

from __future__ import annotations

import json

import pytest

from kgctl.commands.pipelines.shown_progress import ShownProgress
from kgctl.pipelines.progress import Progress

EVENTS = (
    Progress("timing", phase="jvm", seconds=3.0),
    Progress("done", job="decode", records=0),
    Progress("timing", phase="job", seconds=1.0, job="lag"),
    Progress("done", job="lag", rows=0),
    Progress("done", job="lag", rows=2),
)
JVM = "            jvm           3.0 s  the JVM starts, and Python loads Spark"
LAG = "lag         job           1.0 s  the whole job"
DECODE, NONE, TWO = (
    "decode      done: 0 records read",
    "lag         done: 0 rows written",
    "lag         done: 2 rows written",
)


@pytest.mark.parametrize(
    ("timings", "follow", "lines"),
    [
        (False, False, [DECODE, NONE, TWO]),
        (True, False, [DECODE, NONE, TWO, JVM, LAG]),
        (False, True, [DECODE, TWO]),
        (True, True, [JVM, DECODE, LAG, TWO]),
    ],
)
def test_people_see_timings_at_the_end_or_as_they_come(
    timings: bool, follow: bool, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ShownProgress(json_lines=False, timings=timings, follow=follow)
    for event in EVENTS:
        shown.show(event)
    shown.end()
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", lines)


@pytest.mark.parametrize("timings", [False, True])
def test_programs_see_every_event(timings: bool, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownProgress(json_lines=True, timings=timings, follow=True)
    for event in EVENTS:
        shown.show(event)
    shown.end()
    out, err = capsys.readouterr()
    seen = [json.loads(line) for line in out.splitlines()]
    assert seen == [json.loads(one.to_json()) for one in EVENTS if timings or one.kind != "timing"]
    assert err == ""
