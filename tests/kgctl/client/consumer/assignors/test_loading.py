"""Assignors are found by their names, and a name that leads to none is an error of one line."""

from __future__ import annotations

import pytest

from kgctl.client.consumer.assignors.assignor import Assignor, RebalanceProtocol
from kgctl.client.consumer.assignors.loading import (
    BUILT_IN,
    UnusableAssignor,
    common_protocols,
    load_assignor,
    load_assignors,
)
from kgctl.client.consumer.assignors.range import RangeAssignor

PLUGGED = "tests.kgctl.client.consumer.assignors.plugged"


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_name_makes_the_assignor_of_that_name(name: str) -> None:
    first, second = load_assignor(name), load_assignor(name)
    assert first.name == name
    assert first is not second


def test_javas_class_names_are_known() -> None:
    loaded = load_assignors([f"org.apache.kafka.clients.consumer.{name}" for _, name in BUILT_IN.values()])
    assert [one.name for one in loaded] == list(BUILT_IN)


@pytest.mark.parametrize("attribute", ["EverythingToTheFirst", "Factories.first", "INSTANCE"])
def test_a_class_a_function_and_an_instance_of_a_module_are_assignors(attribute: str) -> None:
    loaded = load_assignor(f"{PLUGGED}:{attribute}")
    assert loaded.name == "first"
    assert loaded.protocols == (RebalanceProtocol.EAGER,)
    assert loaded.subscription_user_data(["t"]) is None


def test_instances_and_names_may_be_mixed() -> None:
    mine = RangeAssignor()
    loaded = load_assignors([mine, "roundrobin"])
    assert loaded[0] is mine
    assert loaded[1].name == "roundrobin"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rang", "unknown assignor 'rang': use range, roundrobin"),
        ("module:", "unknown assignor 'module:'"),
        ("no.such.module:Name", "cannot import no.such.module: ModuleNotFoundError"),
        (f"{PLUGGED.replace('plugged', 'broken')}:Name", "RuntimeError: no licence"),
        (f"{PLUGGED}:Missing", "has no Missing"),
        (f"{PLUGGED}:NUMBER", "NUMBER is neither an assignor nor a class of one"),
        (f"{PLUGGED}:Demanding", "Demanding() failed: TypeError"),
        (f"{PLUGGED}:Nameless", "it has no name"),
        (f"{PLUGGED}:NotAnAssignor", "it has no method assign"),
        (f"{PLUGGED}:WithoutProtocols", "its protocols are not a list of RebalanceProtocol"),
    ],
)
def test_a_name_that_leads_to_no_assignor_is_an_error_that_says_why(name: str, message: str) -> None:
    with pytest.raises(UnusableAssignor) as caught:
        load_assignor(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_assignors_of_one_name_are_an_error_that_names_both() -> None:
    with pytest.raises(UnusableAssignor, match=r"two assignors have the name 'range': .*:RangeAssignor and"):
        load_assignors(["range", "org.apache.kafka.clients.consumer.RangeAssignor"])


def test_at_least_one_assignor_is_needed() -> None:
    with pytest.raises(UnusableAssignor, match=r"partition\.assignment\.strategy is empty"):
        load_assignors([])


def test_assignors_without_a_common_protocol_are_an_error() -> None:
    with pytest.raises(UnusableAssignor, match=r"no rebalance protocol in common: range \(eager\), only-cooperative"):
        load_assignors(["range", f"{PLUGGED}:OnlyCooperative"])


def test_the_common_protocols_are_those_that_all_assignors_support() -> None:
    eager: Assignor = RangeAssignor()
    assert common_protocols([eager]) == [RebalanceProtocol.EAGER]
