"""The recipes of docs/pipelines-recipes.md, run as they stand there, against a broker."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from broker.local import LocalBroker
from kgctl.pipelines.spark import fast_start
from tests.harness import ROOT
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.pipelines.results.evaluations import evaluate

PAGE = (ROOT / "docs" / "pipelines-recipes.md").read_text()
LAST_WORDS = "Error: 1 group is STALLED or worse: readers STOPPED (1 of 1 partition, lag 60)"
# A group is STOPPED only if it had lag 100 s ago as well.
AGO_MS = 600_000


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


UNITS = dict(re.findall(r"`/etc/systemd/system/([a-z.-]+)`:\n\n```ini\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    """A broker with a group that has stopped."""
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100], time.time_ns() // 1_000_000 - AGO_MS)
        kgctl.commit("readers", "orders", p0=40)
        yield kgctl


@pytest.fixture(scope="module")
def environment(kgctl: Kgctl, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a shell whose kgctl is this one, with the cluster as the context prod. All recipes add to the same tables."""
    home, commands = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("bin")
    script = commands / "kgctl"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kgctl "$@"\n')
    script.chmod(0o755)
    own = {"HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}", fast_start.VARIABLE: "1"}
    kept = ("JAVA_HOME", "LANG", "PYTHONPATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | own
    bootstrap = str(kgctl.bootstrap)
    create = [script, "context", "add", "prod", "--bootstrap", bootstrap]
    done = subprocess.run(create, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return environment


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_the_line_of_the_crontab_writes_something_because_a_group_has_stopped(environment: dict[str, str]) -> None:
    (crontab,) = blocks("crontab")
    setting, line = crontab.splitlines()
    name, _, value = setting.partition("=")
    command = line.split(" ", 5)[5]
    assert "%" not in command
    done = shell(command, environment | {name: value})
    assert done.stdout.splitlines()[-1] == LAST_WORDS


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name, text in UNITS.items() if "oneshot" in text])
def test_the_service_evaluates_the_groups(name: str, kgctl: Kgctl, environment: dict[str, str], tmp_path: Path) -> None:
    state = tmp_path / "state"
    unit = UNITS[name].replace("%S/kgctl", str(state))
    settings = dict(line.partition("=")[::2] for line in unit.splitlines() if "=" in line)
    own = dict(word.split("=") for word in settings["Environment"].split())
    state.mkdir()
    command = settings["ExecStart"].replace("/usr/local/bin/kgctl", "kgctl")
    done = shell(command, environment | own | {"KGCTL_BOOTSTRAP": str(kgctl.bootstrap)})
    assert str(done.returncode) == settings["SuccessExitStatus"], done.stderr
    assert 'group="readers",status="STOPPED"} 1.0' in (state / "kgctl.prom").read_text()


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("no systemd-analyze on the PATH")
    assert len(UNITS) == 3
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text.replace("/usr/local/bin/kgctl", sys.executable))
    paths = [str(tmp_path / name) for name in UNITS]
    done = subprocess.run([found, "verify", "--man=no", *paths], capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if "kgctl" in line]
    assert own == [], done.stderr


class Failed(Exception):
    pass


@pytest.fixture
def evaluate_task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function of the task; Airflow itself is too large to install."""
    tasks: list[Any] = []

    def task(**_: object) -> Any:
        return lambda function: lambda: tasks.append(function)

    def dag(**_: object) -> Any:
        return lambda function: function

    sdk, exceptions = SimpleNamespace(dag=dag, task=task), SimpleNamespace(AirflowFailException=Failed)
    for name, module in (("airflow", SimpleNamespace()), ("airflow.sdk", sdk), ("airflow.exceptions", exceptions)):
        monkeypatch.setitem(sys.modules, name, module)
    (source, _) = blocks("python")
    exec(compile(source, "consumer_groups.py", "exec"), {})
    (found,) = tasks
    return found


@pytest.mark.parametrize(("code", "error"), [(0, None), (3, Failed), (7, subprocess.CalledProcessError)])
def test_the_task_fails_for_good_only_if_a_group_is_stalled(
    code: int, error: type[Exception] | None, evaluate_task: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "kgctl"
    program.write_text(f"#!/bin/sh\necho Warning >&2; echo Error: stalled >&2; exit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if error is None:
        evaluate_task()
        return
    with pytest.raises(error) as raised:
        evaluate_task()
    assert error is not Failed or str(raised.value) == "Error: stalled"


def test_the_cron_job_runs_a_command_that_kgctl_accepts_up_to_the_cluster(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (text,) = blocks("yaml")
    job = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [3]
    (tmp_path / "url").write_text("https://example.org/")
    words = [*container["command"], *container["args"], "--timeout", "5"]
    words = [word.replace("/facts/tables", str(tmp_path)).replace("/etc/kgctl", str(tmp_path)) for word in words]
    done = shell(shlex.join(words), environment | {"KGCTL_BOOTSTRAP": "127.0.0.1:1"})
    assert done.returncode == 7, done.stderr


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_the_application_runs_with_spark_submit(kgctl: Kgctl, environment: dict[str, str], tmp_path: Path) -> None:
    import pyspark

    for minute, status in enumerate(["STALLED", "OK", "STOPPED"]):
        evaluate(tmp_path / "facts", minute, readers=status, fine="OK")
    (_, source) = blocks("python")
    (tmp_path / "unhealthy.py").write_text(source)
    (command,) = blocks("sh")
    command = command.replace("/srv/facts", str(tmp_path / "facts")).replace("kafka-1:9092", str(kgctl.bootstrap))
    command = command.replace("unhealthy.py", str(tmp_path / "unhealthy.py"))
    spark_bin = f"{Path(pyspark.__file__).parent}/bin"
    own = {"PATH": f"{spark_bin}:{environment['PATH']}", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = shell(command, environment | own)
    assert done.stdout.splitlines() == ["readers\torders\t2\t100"], done.stderr[-3000:]


def shell(command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=False, timeout=280, cwd="/"
    )
