"""Test cases and Hypothesis strategies for every message, derived from the declarations."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import strategies as st

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import ARRAY, STRING, Field, Message, Scalar, Sequence, StructMeta

MESSAGES: list[type[Message]] = [cls for key in APIS for cls in (APIS[key].request, APIS[key].response)]
MESSAGE_VERSIONS = [(cls, version) for cls in MESSAGES for version in cls.VERSIONS]
SOAK = [pytest.mark.soak]

# kio accepts only error codes that have a name.
ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
# kio turns durations into timedelta, which has a smaller range than 64 bits.
DURATIONS = st.integers(0, (1 << 31) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
INTEGERS = {"b": 8, "h": 16, "i": 32, "q": 64}


def each_version(cases: Iterable[tuple[type[Message], int]] = MESSAGE_VERSIONS) -> pytest.MarkDecorator:
    """Parametrize a test with (cls, version). Versions outside the sample are marked as soak tests."""
    marked = [
        pytest.param(cls, version, id=f"{cls.__name__}-v{version}", marks=[] if version in sample(cls) else SOAK)
        for cls, version in cases
    ]
    return pytest.mark.parametrize(("cls", "version"), marked)


@cache
def sample(cls: type[Message]) -> frozenset[int]:
    """The first, the first flexible and the last version, and one that a seed picks."""
    first, last = cls.VERSIONS[0], cls.VERSIONS[-1]
    picked = random.Random(cls.__name__).choice(cls.VERSIONS)
    return frozenset({first, cls.FLEXIBLE_SINCE, last, picked})


@cache
def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Messages with a value for each field of the version and defaults for the others."""
    return _structs(cls, version)


def _structs(cls: StructMeta, version: int) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{field.name: _values(field, version) for field in cls.FIELDS})


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if not field.is_in(version):
        return st.just(field.absent())
    if field.name.endswith("error_code"):
        values = ERROR_CODES
    elif field.name.endswith("_ms") and isinstance(field.type, Scalar):
        values = DURATIONS
    else:
        values = _of_type(field.type, version)
    if isinstance(field.type, StructMeta) and field.tag is not None:
        # Other libraries omit a tagged struct that holds only defaults.
        return st.none() | values.filter(lambda value: value != field.type())
    return st.none() | values if field.is_nullable(version) else values


def _of_type(wire_type: Any, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, Scalar):
        return _scalars(wire_type)
    if isinstance(wire_type, Sequence):
        return TEXT if wire_type is STRING else st.binary(max_size=200)
    if isinstance(wire_type, ARRAY):
        return st.lists(_of_type(wire_type.element, version), max_size=3)
    return _structs(wire_type, version)


def _scalars(wire_type: Scalar) -> st.SearchStrategy[Any]:
    if wire_type.code == "?":
        return st.booleans()
    if wire_type.code == "16s":
        return st.binary(min_size=16, max_size=16)
    if wire_type.code == "d":
        # NaN differs from itself.
        return st.floats(allow_nan=False)
    bits = INTEGERS[wire_type.code]
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
