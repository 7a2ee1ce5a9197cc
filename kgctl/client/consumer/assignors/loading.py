"""Assignors by name: those of this package, as kgctl or as Java's configurations name them, and anybody's as `module:name`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import cast

from kgctl.client.consumer.assignors.assignor import Assignor, RebalanceProtocol
from kgctl.client.net.errors import KgctlError

_PACKAGE = "kgctl.client.consumer.assignors"
BUILT_IN = {
    "range": ("range", "RangeAssignor"),
    "roundrobin": ("round_robin", "RoundRobinAssignor"),
    "sticky": ("sticky", "StickyAssignor"),
    "cooperative-sticky": ("sticky", "CooperativeStickyAssignor"),
}
_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."


class UnusableAssignor(KgctlError):
    """A name of partition.assignment.strategy that leads to no assignor."""

    is_final = True
    name = "BAD_VALUE"


def load_assignors(names: Iterable[str | Assignor]) -> list[Assignor]:
    """New assignors in the order of their names; instances stay as they are. UnusableAssignor says what is wrong."""
    found: dict[str, Assignor] = {}
    for given in names:
        assignor = load_assignor(given) if isinstance(given, str) else _checked(given, repr(given))
        if assignor.name in found:
            raise UnusableAssignor(
                f"two assignors have the name {assignor.name!r}: {_described(found[assignor.name])} and "
                f"{_described(assignor)}; name each once"
            )
        found[assignor.name] = assignor
    if not found:
        raise UnusableAssignor("partition.assignment.strategy is empty: name at least one assignor")
    common_protocols(found.values())
    return list(found.values())


def load_assignor(name: str) -> Assignor:
    """A new assignor: `range`, Java's class name of it, or `module:name` of a class or of a function that makes one."""
    short = _java_names().get(name, name)
    if short in BUILT_IN:
        module, built_in = BUILT_IN[short]
        return cast(Assignor, getattr(importlib.import_module(f"{_PACKAGE}.{module}"), built_in)())
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise UnusableAssignor(
            f"unknown assignor {name!r}: use {', '.join(BUILT_IN)}, or module:name of an assignor of your own"
        )
    return _plugged_in(name, module_name, attribute)


def common_protocols(assignors: Iterable[Assignor]) -> list[RebalanceProtocol]:
    """The rebalance protocols that all of them support: a consumer uses COOPERATIVE if it is among them."""
    listed = list(assignors)
    common = [protocol for protocol in listed[0].protocols if all(protocol in one.protocols for one in listed)]
    if not common:
        names = ", ".join(f"{one.name} ({'/'.join(p.value for p in one.protocols)})" for one in listed)
        raise UnusableAssignor(f"the assignors have no rebalance protocol in common: {names}")
    return common


def _plugged_in(name: str, module_name: str, attribute: str) -> Assignor:
    try:
        found: object = importlib.import_module(module_name)
    except Exception as error:
        raise UnusableAssignor(
            f"assignor {name!r}: cannot import {module_name}: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UnusableAssignor(f"assignor {name!r}: module {module_name} has no {attribute}")
        found = getattr(found, part)
    if isinstance(found, type) or not hasattr(found, "assign"):
        if not callable(found):
            raise UnusableAssignor(f"assignor {name!r}: {attribute} is neither an assignor nor a class of one")
        try:
            found = cast(Callable[[], object], found)()
        except Exception as error:
            raise UnusableAssignor(
                f"assignor {name!r}: {attribute}() failed: {type(error).__name__}: {error}"
            ) from error
    return _checked(found, repr(name))


def _checked(assignor: object, given: str) -> Assignor:
    name = getattr(assignor, "name", None)
    if not isinstance(name, str) or not name:
        raise UnusableAssignor(f"assignor {given}: it has no name, the text that JoinGroup carries")
    for method in ("assign", "subscription_user_data", "on_assignment"):
        if not callable(getattr(assignor, method, None)):
            raise UnusableAssignor(f"assignor {given}: it has no method {method}; derive it from kgctl's Assignor")
    protocols = getattr(assignor, "protocols", ())
    if not protocols or not all(isinstance(one, RebalanceProtocol) for one in protocols):
        raise UnusableAssignor(f"assignor {given}: its protocols are not a list of RebalanceProtocol")
    return cast(Assignor, assignor)


def _described(assignor: object) -> str:
    return f"{type(assignor).__module__}:{type(assignor).__qualname__}"


def _java_names() -> dict[str, str]:
    return {_JAVA_PACKAGE + class_name: name for name, (_, class_name) in BUILT_IN.items()}
