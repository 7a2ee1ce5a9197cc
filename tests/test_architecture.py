"""What may import what, and what a start-up may load."""

import ast
import subprocess
import sys

import pytest

from kgctl.contexts.target import VARIABLES
from tests.harness import ROOT

PACKAGES = ("broker", "kgctl")
BANNED_WORDS = {"manager", "helper", "util", "utils", "common", "misc", "service", "data", "info", "process"}


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running the code."""
    printed = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(printed.stdout.split())


def test_imports_follow_the_contracts() -> None:
    checked = subprocess.run(
        [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert checked.returncode == 0, checked.stdout


def test_importing_kgctl_loads_nothing_heavy() -> None:
    assert not loaded_after("import kgctl") & {"rich", "textual", "pyspark", "asyncio", "typer"}


def test_the_top_of_the_command_line_loads_no_rich_no_textual_and_no_asyncio() -> None:
    code = (
        "import sys; sys.argv = ['kgctl', '--timeout', '5', '--help']\n"
        "from kgctl.__main__ import main\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()"
    )
    loaded = loaded_after(code)
    assert "kgctl.app" in loaded
    assert not loaded & {"rich", "textual", "pyspark", "asyncio", "yaml", "apsw"}


def test_a_broker_without_transactions_does_not_load_their_coordinator() -> None:
    code = (
        "import broker.__main__, broker.server.daemon, broker.server.broker\n"
        "from broker.server.handlers import declarations_of\n"
        "for module in ('produce', 'fetch', 'list_offsets', 'init_producer_id', 'groups'): declarations_of(module)"
    )
    loaded = loaded_after(code)
    assert "broker.storage.log" in loaded
    assert not {module for module in loaded if "broker.cores.transactions" in module or "server.transaction" in module}


def test_a_broker_without_consumer_groups_does_not_load_them() -> None:
    code = (
        "import broker.__main__, broker.server.daemon, broker.server.broker\n"
        "from broker.server.handlers import declarations_of\n"
        "declarations_of('groups')"
    )
    loaded = loaded_after(code)
    assert "broker.cores.groups.classic.join" in loaded
    newer = (
        "groups.consumer",
        "groups.assignors",
        "records.consumer",
        "newer_group_records",
        "handlers.consumer_groups",
    )
    assert not {module for module in loaded if module.endswith(newer) or "groups.consumer." in module}


def test_the_pytest_plugin_loads_nothing_heavy() -> None:
    assert not loaded_after("import broker.pytest_plugin") & {"asyncio", "apsw", "typer", "rich"} - loaded_after(
        "import pytest"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_does_in_its_first_line(package: str) -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in (ROOT / package).rglob("*.py")
        if path.read_text() and not path.read_text().startswith('"""')
    ]
    assert not silent


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_has_a_name_that_says_nothing(package: str) -> None:
    vague = [str(path) for path in (ROOT / package).rglob("*.py") if path.stem.split("_")[-1] in BANNED_WORDS]
    assert not vague


def test_only_the_contexts_decide_how_to_connect() -> None:
    """No other room of kgctl reads a variable that names a cluster, or makes the settings of a connection.

    Programs that use the library give its clients options, which `kgctl.client.config` reads.
    """
    rooms = (ROOT / "kgctl").rglob("*.py")
    allowed = ("contexts/", "client/config/", "client/net/connector.py")
    others = [path for path in rooms if not str(path.relative_to(ROOT / "kgctl")).startswith(allowed)]
    found = []
    for path in others:
        for node in ast.walk(ast.parse(path.read_text())):
            is_variable = isinstance(node, ast.Constant) and node.value in VARIABLES
            name = getattr(node.func, "id", None) if isinstance(node, ast.Call) else None
            if is_variable or name in ("ConnectionSettings", "security_from"):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
