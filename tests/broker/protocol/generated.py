"""Hypothesis strategies for every message, made from the declarations."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import ARRAY, STRING, Field, Message, Scalar, Sequence, StructMeta

MESSAGES: list[type[Message]] = [cls for key in APIS for cls in (APIS[key].request, APIS[key].response)]
MESSAGE_VERSIONS = [(cls, version) for cls in MESSAGES for version in cls.VERSIONS]

# kio knows the codes that have a name, and no others.
ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
# kio makes times of them, which end before 64 bits do.
DURATIONS = st.integers(0, (1 << 31) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
INTEGERS = {"b": 8, "h": 16, "i": 32, "q": 64}


def name_of(case: Any) -> str:
    """The id of a test case: JoinGroupRequest-v9."""
    return case.__name__ if isinstance(case, type) else f"v{case}"


@cache
def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Messages with a value for each field of the version, and the default for the others."""
    return _structs(cls, version)


def _structs(cls: StructMeta, version: int) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{field.name: _values(field, version) for field in cls.FIELDS})


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if not field.is_in(version):
        return st.just(field.absent())
    if field.name.endswith("error_code"):
        values = ERROR_CODES
    elif field.name.endswith("_ms"):
        values = DURATIONS
    else:
        values = _of_type(field.type, version)
    if isinstance(field.type, StructMeta) and field.tag is not None:
        # A tagged struct that says nothing but defaults is written by nobody but us.
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
    bits = INTEGERS[wire_type.code]
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
