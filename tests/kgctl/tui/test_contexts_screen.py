"""The screen of contexts: what it shows, tests of connections, and the switch to another cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.contexts.target import Given, choose
from kgctl.model.contexts import FAILED, OK, ContextRow, SettingRow, StepRow
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.connecting import connecting
from kgctl.tui.feed.contexts import Contexts, ContextsNow, ContextTest, ContextTested
from kgctl.tui.feed.values import from_json, to_json
from kgctl.tui.screens.contexts import ContextsScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.widgets.frame.header import Header
from kgctl.tui.widgets.frame.unreachable import Unreachable
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.contexts.folders import Home
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def context(name: str, bootstrap: str | None = None, *, current: bool = False, **values: object) -> ContextRow:
    fixed = {"mechanism": None, "read_only": False, "confirm": False, "color": None, "timeout_s": None}
    return ContextRow(
        **{
            "context": name,
            "current": current,
            "bootstrap": bootstrap or f"{name}.example.com:9092",
            "protocol": "PLAINTEXT",
            "defined_in": "user",
            "file": "/home/ada/.config/kgctl/config.toml",
            **fixed,
            **values,
        }
    )


ROWS = (
    context("local", "127.0.0.1:9092", color="green"),
    context("production", protocol="SASL_SSL", mechanism="SCRAM-SHA-512", color="red", read_only=True, confirm=True),
    context("staging", current=True, protocol="SSL", color="yellow", confirm=True),
    context("vpn-only"),
)
SETTINGS = {
    "production": (
        SettingRow("production", "bootstrap.servers", "production.example.com:9092", "config.toml, line 3"),
        SettingRow("production", "security.protocol", "SASL_SSL", "config.toml, line 4"),
        SettingRow("production", "sasl.password", "command pass show kafka", "config.toml, line 5"),
        SettingRow("production", "read-only", "true", "config.toml, line 6"),
    )
}
NOW = ContextsNow(ROWS, SETTINGS, "/srv/shop/.kgctl.toml is not trusted: see `kgctl context trust`")
FAILS = ContextTested(
    (
        StepRow("settings", OK, None, "SASL_SSL; secrets found: sasl.password", 41.0, None),
        StepRow("name", OK, "production.example.com:9092", "10.1.0.7", 3.2, None),
        StepRow(
            "port",
            FAILED,
            "production.example.com:9092",
            "connection refused",
            0.4,
            "Check the address in config.toml, line 3.",
        ),
    ),
    snapshots.NOW_MS,
)
WORKS = ContextTested((StepRow("port", OK, "127.0.0.1:9092", "127.0.0.1:9092 answers", 1.0, None),), snapshots.NOW_MS)
READS = {
    Contexts(): [NOW],
    ContextTest("production"): [FAILS],
    ContextTest("local"): [WORKS],
    ContextTest("staging"): [None],
    ContextTest("vpn-only"): [FAILS],
}


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_contexts(snap_compare, size) -> None:
    app = KgctlApp(PreparedFeed(reads=READS), clock=lambda: snapshots.NOW_S)

    async def go(pilot) -> None:
        await until(lambda: app.screen.is_running)
        await pilot.press("g", "c")
        await until(lambda: isinstance(app.screen, ContextsScreen) and app.screen.panel.table.has_focus)
        await pilot.press("C", "j", "j")
        await until(lambda: "fails" in app.screen.panel.table.render_line(3).text)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=go)


def test_contexts_and_their_tests_are_written_and_read() -> None:
    for found in (NOW, FAILS, WORKS, ContextsNow()):
        assert from_json(type(found), json.loads(json.dumps(to_json(found)))) == found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A user with folders of their own, also for this process."""
    monkeypatch.chdir(tmp_path)
    found = Home(tmp_path)
    for name, text in found.environ.items():
        monkeypatch.setenv(name, text)
    return found


def shown(app: KgctlApp) -> list[str]:
    assert isinstance(app.screen, GroupsScreen)
    return [row.group for row in app.screen.rows.rows]


def test_the_dashboard_switches_to_other_clusters_and_back(home: Home) -> None:
    with LocalBroker() as one, LocalBroker() as other:
        for broker, group in ((one, "here"), (other, "there")):
            kgctl = Kgctl(broker.bootstrap_servers)
            assert kgctl("topics", "create", "t").exit_code == 0
            fill(kgctl, "t", [3])
            kgctl.commit(group, "t", p0=1)
        home.write(
            f'[contexts.prod]\n"bootstrap.servers" = "{other.bootstrap_servers}"\nread-only = true\ncolor = "red"\n'
            '[contexts.gone]\n"bootstrap.servers" = "127.0.0.1:1"\n'
            '[contexts.locked]\n"bootstrap.servers" = "127.0.0.1:1"\n"security.protocol" = "SASL_PLAINTEXT"\n'
            '"sasl.mechanism" = "PLAIN"\n"sasl.username" = "u"\n"sasl.password" = { env = "KGCTL_NO_SUCH" }\n'
        )
        target = choose(Given(bootstrap=one.bootstrap_servers))
        settings = ConnectionSettings(parse(one.bootstrap_servers), timeout=5)
        connect = connecting(target, settings, timeout=5, read_only=False)

        async def play() -> None:
            app = KgctlApp(connect(None), connect=connect)
            async with app.run_test(size=(120, 40)) as pilot:

                async def contexts(*keys: str):
                    await pilot.press("g", "c")
                    await until(lambda: isinstance(app.screen, ContextsScreen) and app.screen.panel.table.has_focus)
                    screen = app.screen
                    await pilot.press(*keys)
                    return screen

                async def groups(expected: list[str]) -> None:
                    await until(lambda: isinstance(app.screen, GroupsScreen) and app.screen.is_mounted)
                    await until(lambda: shown(app) == expected)

                await groups(["here"])
                # A context without its secret changes nothing.
                screen = await contexts("j", "j", "enter")
                await until(lambda: app._notifications)
                assert "KGCTL_NO_SUCH" in next(iter(app._notifications)).message
                assert app.screen is screen
                # The third one is read-only.
                await pilot.press("j", "enter")
                await groups(["there"])
                header = app.screen.query_one(Header).text
                assert header.startswith("kgctl \u203a prod")
                assert "READ-ONLY" in header
                assert app.read_only
                assert app.feed.cluster.context == "prod"
                assert app.cluster is not None
                assert set(app.cluster.snapshot.groups) == {"there"}
                # From a cluster that does not answer, one can go back; the test of a connection says what fails.
                screen = await contexts("home", "j", "c")
                await until(lambda: "fails at port" in screen.panel.table.render_line(2).text)
                await pilot.press("enter")
                await until(lambda: isinstance(app.screen, GroupsScreen) and app.screen.query_one(Unreachable).display)
                await until(lambda: "No answer from gone" in str(app.screen.query_one(Unreachable).render()))
                assert not app.read_only
                assert app.cluster is None
                await contexts("home", "enter")
                await groups(["here"])
                assert not app.read_only
            app.feed.close()

        asyncio.run(play())


def test_a_dashboard_without_other_clusters_says_so() -> None:
    async def play() -> None:
        app = KgctlApp(PreparedFeed([snapshots.snapshot([])], reads=READS), clock=lambda: snapshots.NOW_S)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(app.ready.is_set)
            await pilot.press("g", "c")
            await until(lambda: isinstance(app.screen, ContextsScreen) and app.screen.panel.table.has_focus)
            await pilot.press("j", "enter")
            await until(lambda: app._notifications)
            assert isinstance(app.screen, ContextsScreen)
            await pilot.press("home", "enter")
            await until(lambda: isinstance(app.screen, GroupsScreen))

    asyncio.run(play())
