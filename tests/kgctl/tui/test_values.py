"""Answers as JSON values and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.read import answer_type
from kgctl.tui.feed.values import NotAValue, from_json, to_json
from tests.kgctl.tui import group_snapshots, snapshots


def again(value: object) -> object:
    return from_json(type(value), json.loads(json.dumps(to_json(value))))


@pytest.mark.parametrize(
    "groups", [snapshots.every_state(), snapshots.hostile(), []], ids=["states", "hostile", "none"]
)
def test_a_snapshot_of_all_groups_is_written_and_read(groups: list[GroupDescription]) -> None:
    errors = (RowError("UNREACHABLE", "broker 2 does not answer"),)
    found = replace(snapshots.snapshot(groups), errors=errors)
    assert again(found) == found


def test_a_snapshot_of_one_group_is_written_and_read() -> None:
    for found in (
        group_snapshots.snapshot(),
        group_snapshots.snapshot(events=group_snapshots.history()),
        group_snapshots.snapshot(None, None, history_error="no history"),
    ):
        assert again(found) == found


def test_defaults_are_not_written_and_unknown_fields_are_skipped() -> None:
    assert to_json(GroupDescription("g")) == {"group": "g"}
    assert from_json(GroupDescription, {"group": "g", "of_a_later_version": [1]}) == GroupDescription("g")


@pytest.mark.parametrize(
    "wrong", [None, [], {}, {"group": 1}, {"group": "g", "members": {}}, {"group": "g", "generation": "7"}]
)
def test_a_value_of_another_type_is_refused(wrong: object) -> None:
    with pytest.raises(NotAValue):
        from_json(GroupDescription, wrong)


def test_the_type_of_an_answer_follows_from_the_read() -> None:
    assert (answer_type(AllGroups), answer_type(OneGroup)) == (Snapshot, GroupSnapshot)


def test_what_is_no_part_of_a_question_does_not_distinguish_it() -> None:
    assert OneGroup("g", whole_history=True) == OneGroup("g")
    assert hash(OneGroup("g", whole_history=True)) == hash(OneGroup("g"))
