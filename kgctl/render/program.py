"""A template or path of the user, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker.light_named_tuples import NamedTuple


class BadFormat(ValueError):
    """A format that is not known, or a template or path that cannot be used; the message ends with a full stop."""


class Program(NamedTuple):
    """A compiled template or path. `run` gets the envelope, and whether control characters are spelled out.

    `fields` are those of a row that it needs; empty if that is not known.
    """

    run: Callable[[Mapping[str, Any], bool], str]
    fields: frozenset[str] = frozenset()
