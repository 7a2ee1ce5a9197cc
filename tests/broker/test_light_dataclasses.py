"""Light dataclasses behave like those of the standard library, at a fraction of the cost of a declaration."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from broker import light_dataclasses as light


@light.dataclass(frozen=True, slots=True)
class Point:
    """Where something is."""

    KINDS: ClassVar[tuple[str, ...]] = ("flat",)
    x: int
    y: int = 2
    names: list[str] = light.field(default_factory=list)
    secret: str = light.field(default="", repr=False, metadata={"why": "hidden"})

    @property
    def sum(self) -> int:
        return self.x + self.y


@light.dataclass(frozen=True, slots=True)
class Place(Point):
    height: int = 0


@light.dataclass(slots=True)
class Counter:
    count: int
    doubled: int = light.field(default=0, init=False)

    def __post_init__(self) -> None:
        self.doubled = 2 * self.count


@light.dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    name: str
    size: int = 1
    note: str = light.field(default="", compare=False)


@light.dataclass(frozen=True, slots=True)
class Nothing: ...


@light.dataclass(frozen=True, slots=True)
class OwnHash:
    name: str

    def __hash__(self) -> int:
        return 7


@light.dataclass(frozen=True, slots=True, order=True)
class Ordered:
    rank: int
    name: str = ""


@light.dataclass(frozen=True)
class Roomy:
    name: str
    size: int = light.field(default=1)


def standard(cls: Any) -> Any:
    """The same declaration with the standard library's decorator."""
    body = {field.name: field for field in dataclasses.fields(cls)}
    made = [
        (
            field.name,
            field.type,
            dataclasses.field(
                default=field.default, default_factory=field.default_factory, repr=field.repr, init=field.init
            ),
        )
        for field in body.values()
    ]
    return dataclasses.make_dataclass(cls.__name__, made, frozen=True, slots=True)


@pytest.mark.parametrize("arguments", [(1,), (1, 3), (1, 3, ["a"]), (1, 3, ["a"], "s")])
def test_an_instance_has_the_values_the_text_and_the_comparison_of_a_dataclass(arguments: tuple[Any, ...]) -> None:
    ours, theirs = Point(*arguments), standard(Point)(*arguments)
    assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert dataclasses.astuple(ours) == dataclasses.astuple(theirs)
    assert ours == Point(*arguments) != Point(9)
    assert ours != theirs


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, [], "", 5), {}), ((1,), {"x": 2}), ((1,), {"z": 2})]
)
def test_wrong_arguments_are_refused_with_the_words_of_a_dataclass(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"Point\.__init__\(\) "):
            Point(*arguments, **named)


def test_a_frozen_instance_cannot_be_changed_and_has_no_other_attributes() -> None:
    point: Any = Point(1)
    for change in (lambda: setattr(point, "x", 2), lambda: setattr(point, "z", 2), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert not hasattr(point, "__dict__")


def test_a_default_factory_makes_a_value_for_each_instance() -> None:
    assert Point(1).names is not Point(1).names


def test_frozen_instances_are_hashed_by_value_and_mutable_ones_not_at_all() -> None:
    assert hash(Named(name="a")) == hash(Named(name="a")) != hash(Named(name="b"))
    assert {Named(name="a"): 1}[Named(name="a")] == 1
    assert Named(name="a", note="n") == Named(name="a")
    assert hash(Named(name="a", note="n")) == hash(Named(name="a"))
    assert hash(OwnHash("a")) == 7
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_a_subclass_adds_its_fields_to_those_of_its_base() -> None:
    place = Place(1, 2, [], "s", 5)
    assert [field.name for field in dataclasses.fields(Place)] == ["x", "y", "names", "secret", "height"]
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y", "names", "secret"]
    assert place.sum == 3
    assert place != Point(1, 2, [], "s")
    assert repr(place) == "Place(x=1, y=2, names=[], height=5)"


def test_the_standard_library_sees_a_dataclass() -> None:
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.is_dataclass(Point(1))
    x, _, names, secret = dataclasses.fields(Point(1))
    assert (x.name, x.type, names.default_factory) == ("x", "int", list)
    assert (secret.default, secret.repr, secret.metadata["why"]) == ("", False, "hidden")
    assert dataclasses.replace(Point(1), y=5) == light.replace(Point(1), y=5) == Point(1, 5)


def test_fields_may_be_computed_after_construction_and_are_not_replaced() -> None:
    assert light.replace(Counter(1), count=4).doubled == 8
    with pytest.raises(ValueError, match="doubled"):
        light.replace(Counter(1), doubled=3)


def test_keywords_only() -> None:
    assert Named(name="a", size=1) == Named(name="a")
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[misc]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_instances_are_copied_and_pickled(copied: Any) -> None:
    for value in (Place(1, 2, ["a"], "s", 3), Counter(3), Nothing()):
        assert copied(value) == value


def test_patterns_match_by_position() -> None:
    match Point(1, 5):
        case Point(1, y):
            assert y == 5
        case _:
            pytest.fail("no match")


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable"):

        @light.dataclass(slots=True)
        class Wrong:
            names: list[str] = []


def test_the_standard_library_serves_what_light_dataclasses_do_not_have() -> None:
    roomy = Roomy("a")
    object.__setattr__(roomy, "extra", 1)
    assert roomy == Roomy("a", 1)


def test_instances_are_ordered_by_their_values() -> None:
    assert sorted([Ordered(2), Ordered(1, "b"), Ordered(1, "a")]) == [Ordered(1, "a"), Ordered(1, "b"), Ordered(2)]
    assert Ordered(1) <= Ordered(1) >= Ordered(1) > Ordered(0)
    with pytest.raises(TypeError):
        assert Ordered(1) < 2  # type: ignore[operator]


def test_a_subclass_may_use_the_decorator_of_the_standard_library() -> None:
    @dataclasses.dataclass(frozen=True)
    class Below(Point):
        height: int = 0

    assert Below(1, height=3).height == 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):

        @dataclasses.dataclass
        class Thawed(Point): ...
