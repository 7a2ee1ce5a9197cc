"""`kgctl pipeline bench` leaves neither processes nor files behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from kgctl.pipelines.bench.children import BenchFailed
from kgctl.pipelines.bench.compare import compare
from tests.kgctl.pipelines.cluster.families import await_end, below
from tests.kgctl.pipelines.runs import KGCTL

pytestmark = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")

PATIENCE_S = 60
GENERATING = ("--records", "200m", "--engines", "python")


def interrupted(folder: Path, number: signal.Signals) -> int:
    """The exit code of a bench that gets the signal while its child writes a file. The child has ended, too."""
    command = [*KGCTL, "pipeline", "bench", *GENERATING]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stderr=subprocess.DEVNULL) as bench:
        deadline = time.monotonic() + PATIENCE_S
        while not list(folder.glob("*/*.parquet")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        children = below(bench.pid)
        assert children
        bench.send_signal(number)
        code = bench.wait(PATIENCE_S)
    for pid in children:
        await_end(pid)
    return code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_bench_ends_its_child_and_deletes_its_files(tmp_path: Path, number: signal.Signals) -> None:
    assert interrupted(tmp_path, number) == 130
    assert list(tmp_path.iterdir()) == []


def test_the_child_of_a_killed_bench_ends(tmp_path: Path) -> None:
    assert interrupted(tmp_path, signal.SIGKILL) == -signal.SIGKILL


def test_a_child_cleans_up_although_the_shell_made_it_ignore_ctrl_c() -> None:
    code = (
        "import signal, time; from kgctl.pipelines.bench.children import end_with_parent\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "try: end_with_parent(); time.sleep(60)\n"
        "except KeyboardInterrupt: print('cleaned up')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.stdout == "cleaned up\n"


def test_a_failure_of_a_child_is_reported_with_its_last_words() -> None:
    with pytest.raises(BenchFailed, match=r"kgctl\.pipelines\.bench\.engines cobol .*: KeyError: 'cobol'"):
        compare([10], ["cobol"], 1, lambda _: None)


def test_an_engine_is_measured() -> None:
    (row,) = compare([1000], ["python"], 1, lambda _: None)
    assert (row.records, row.engine) == (1000, "python")
