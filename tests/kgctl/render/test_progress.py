"""Progress of a long run, where no line can be rewritten."""

from __future__ import annotations

import pytest

from kgctl.pipelines.progress import Progress
from kgctl.render.progress import EVERY_S, ProgressLine


def test_a_log_gets_a_line_for_each_job_at_most_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    line = ProgressLine(json_lines=False, clock=lambda: now_s)
    line.show(Progress("job", job="decode"))
    for second in range(round(2.5 * EVERY_S)):
        now_s = float(second)
        line.show(Progress("progress", job="decode", records=second))
        line.show(Progress("progress", job="lag", rows=second))
    line.show(Progress("done", job="decode", records=150))
    assert capsys.readouterr().err.splitlines() == [
        "decode      started",
        "decode      60 records",
        "lag         60 rows",
        "decode      120 records",
        "lag         120 rows",
        "decode      done: 150 records read",
    ]
