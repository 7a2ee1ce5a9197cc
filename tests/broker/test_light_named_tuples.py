"""Light named tuples behave like those of the standard library."""

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from broker.light_named_tuples import NamedTuple


class Light(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = "origin"

    @property
    def total(self) -> int:
        return self.x + self.y


class Standard(typing.NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = "origin"

    @property
    def total(self) -> int:
        return self.x + self.y


class LightPair(NamedTuple):
    left: Light
    right: Any

    def __repr__(self) -> str:
        return f"<{self.left} {self.right}>"


class Empty(NamedTuple):
    pass


@pytest.mark.parametrize(
    "ask",
    [
        lambda of: tuple(of(1)),
        lambda of: tuple(of(1, name="n")),
        lambda of: tuple(of(*(1, 2), name="n")),
        lambda of: (of(1).x, of(1, 5).y, of(1).name, of(1).total, of(1)[2], len(of(1))),
        lambda of: of(1) == (1, 2, "origin"),
        lambda of: hash(of(1)) == hash((1, 2, "origin")),
        lambda of: of(1) < of(2),
        lambda of: of(1)._asdict(),
        lambda of: tuple(of(1)._replace(y=7)),
        lambda of: tuple(of._make([1, 2, 3])),
        lambda of: (of._fields, of._field_defaults, of.__match_args__, of.__doc__, of.__slots__, of.__mro__[1:]),
        lambda of: repr(of(1)).replace(of.__name__, ""),
        lambda of: typing.get_type_hints(of),
        lambda of: (of.__module__, type(of), isinstance(of(1), tuple)),
        lambda of: tuple(pickle.loads(pickle.dumps(of(1)))),
        lambda of: tuple(copy.copy(of(1))),
    ],
)
def test_both_answer_the_same(ask: Callable[[Any], object]) -> None:
    assert ask(Light) == ask(Standard)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda of: of(),
        lambda of: of(1, 2, 3, 4),
        lambda of: of(1, z=2),
        lambda of: of(1, x=2),
        lambda of: of._make([1]),
        lambda of: of(1)._replace(z=1),
        lambda of: setattr(of(1), "x", 2),
        lambda of: setattr(of(1), "other", 2),
    ],
)
def test_both_refuse_the_same(wrong: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as standard:
        wrong(Standard)
    with pytest.raises(standard.type):
        wrong(Light)


def test_the_body_may_define_methods() -> None:
    assert repr(LightPair(Light(1), None)) == "<Light(x=1, y=2, name='origin') None>"


def test_a_tuple_may_have_no_fields() -> None:
    assert Empty() == ()
    assert repr(Empty()) == "Empty()"


def test_a_subclass_makes_its_own_instances() -> None:
    class Named(Light):
        def __new__(cls, x: int) -> Any:
            return super().__new__(cls, x, name="mine")

    assert (type(Named(1)), Named(1).name, type(Light(1))) == (Named, "mine", Light)


def test_a_field_without_default_behind_one_with_a_default_is_refused() -> None:
    with pytest.raises(TypeError, match="without default"):

        class Wrong(NamedTuple):
            x: int = 1
            y: int  # type: ignore[misc]


def test_a_second_base_class_is_refused() -> None:
    with pytest.raises(TypeError, match="no other base classes"):

        class Wrong(NamedTuple, Exception):  # type: ignore[misc]
            x: int
