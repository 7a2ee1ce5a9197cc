"""How the screen of a group looks: in every state, at three sizes, in all colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.model.watched import GroupLook
from kgctl.tui.app import KgctlApp
from tests.kgctl.tui.group_looks import (
    AT_S,
    GROUP,
    WALL_MS,
    absent,
    completing,
    empty,
    failed,
    group,
    long_story,
    look,
    member,
    newer,
    on_kafka,
    preparing,
    started,
    story,
)
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
SIZES = [SMALL, MIDDLE, LARGE]


def _app(*looks: GroupLook | KgctlError, read_only: bool = False, theme: str = "dark") -> KgctlApp:
    feed = PreparedFeed([None], {GROUP: looks})
    return KgctlApp(feed, group=GROUP, read_only=read_only, theme=theme, clock=lambda: AT_S)


@pytest.fixture
def shown(snap_compare):
    """Whether the screen looks as before, after these keys; so many looks are waited for."""

    def compare(app: KgctlApp, size: tuple[int, int], keys: Sequence[str] = (), looks: int = 1) -> bool:
        async def go(pilot) -> None:
            await until(app.heard.is_set)
            for _ in range(looks - 1):
                before = app.feed.asked
                await pilot.press("ctrl+r")
                await until(lambda before=before: app.feed.asked > before)
                await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=go)

    return compare


def _preparing(**more: str) -> KgctlApp:
    return _app(look(preparing(), [*story(), started(3.4, 12, "member joined")]), **more)


@pytest.mark.parametrize("size", SIZES)
def test_stable(shown, size) -> None:
    assert shown(_app(look(events=story())), size)


@pytest.mark.parametrize("size", SIZES)
def test_preparing_a_rebalance(shown, size) -> None:
    assert shown(_preparing(), size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_other_colours(shown, size, theme) -> None:
    assert shown(_preparing(theme=theme), size)


@pytest.mark.parametrize("keys", [(), ("2", "j"), ("3",), ("4",)])
def test_no_colour(shown, monkeypatch, keys) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(_preparing(), SMALL, keys)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_completing_a_rebalance(shown, size) -> None:
    assert shown(_app(look(completing(), [*story(), started(3.4, 12, "requested by an admin", "a try")])), size)


def test_empty(shown) -> None:
    assert shown(_app(look(empty(), story())), SMALL)


def test_not_there(shown) -> None:
    assert shown(_app(look(absent())), SMALL)


def test_gone_while_watched(shown) -> None:
    gone = GroupLook(AT_S + 2, WALL_MS + 2_000, absent(), ())
    assert shown(_app(look(events=story()), gone), SMALL, looks=2)


def test_an_error_of_the_coordinator(shown) -> None:
    error = failed("NOT_COORDINATOR", "Broker 1 is not the coordinator of group 'billing'.")
    after = GroupLook(AT_S + 2, WALL_MS + 2_000, error, None, "no answer")
    assert shown(_app(look(events=story()), after), SMALL, looks=2)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_long_timeline(shown, size) -> None:
    assert shown(_app(look(events=long_story())), size, ["j"] * 9)


@pytest.mark.parametrize("size", SIZES)
def test_a_real_kafka(shown, size) -> None:
    first = look(on_kafka(), None)
    then = look(on_kafka("PreparingRebalance"), None, after_s=2)
    after = look(on_kafka(members=group().members[:2]), None, after_s=4)
    assert shown(_app(first, then, after), size, looks=3)


def test_members_on_a_real_kafka(shown) -> None:
    assert shown(_app(look(on_kafka(), None)), SMALL, "2")


def test_the_newer_protocol(shown) -> None:
    assert shown(_app(look(newer(), None)), SMALL)


@pytest.mark.parametrize("size", SIZES)
def test_members(shown, size) -> None:
    several = [
        member(1, (0, 1)),
        member(2, (2,), group_instance_id="shop-2", heartbeat_age_ms=24_000),
        member(3, (3, 4), heartbeat_age_ms=44_000, host="/fd00:1234:5678:9abc::17"),
        member(4, (5,), client_id="a-client-with-a-name-that-is-longer-than-a-column-is-wide"),
        member(5, (), client_id="\x1b[31mred[/b]\u202e", heartbeat_age_ms=None),
    ]
    assert shown(_app(look(group(members=several))), size, ["2", "j"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_assignment_before_and_after(shown, size) -> None:
    assert shown(_app(look(events=story())), size, ["j", "enter"])


def test_offsets(shown) -> None:
    assert shown(_app(look(events=story()), look(events=(), after_s=2)), SMALL, "4", looks=2)


def test_read_only(shown) -> None:
    assert shown(_app(look(events=story()), read_only=True), SMALL)


def test_thirty_members_of_whom_one_is_awaited(shown) -> None:
    members = [replace(member(n, phase="join awaited" if n == 17 else "joined")) for n in range(1, 31)]
    assert shown(_app(look(group("PreparingRebalance", members))), SMALL)
