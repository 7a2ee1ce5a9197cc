"""Compile a reader and a writer for one message in one version, at first use.

A run of fixed-width values becomes one struct call, together with the length prefix that ends it; nested structs are
inlined. The result is about as fast as handwritten code, and ten times faster than interpreting the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from broker.protocol.specialise.generator import Generator
from broker.protocol.specialise.reader import ReaderSource
from broker.protocol.specialise.writer import WriterSource
from broker.protocol.wire_types import Message, StructMeta


def specialise_reader(cls: type[Message], version: int) -> Callable[[bytes, int, int], Any]:
    """Compile a function of (data, position, maximum entries) that returns a message, and cache it in `cls.readers`."""
    reader = cls.readers[version] = _compile(ReaderSource, cls, version)
    return reader


def specialise_writer(cls: type[Message], version: int) -> Callable[[Any], Any]:
    """Compile a function that returns a message as bytes, or as parts if it has records; cache it in `cls.writers`."""
    writer = cls.writers[version] = _compile(WriterSource, cls, version)
    return writer


@cache
def specialise_structs(cls: type[Message], element: StructMeta, version: int) -> Callable[[Any], bytes]:
    """Compile a function that encodes entries of an array of these structs in a message, without records and without its length."""
    made = WriterSource(version, cls.FLEXIBLE_SINCE)
    exec(compile(made.entries(element), f"<{cls.__name__}: {element.__name__} v{version}>", "exec"), made.names)
    function: Callable[[Any], bytes] = made.names["function"]
    return function


def _compile(generator: type[Generator], cls: type[Message], version: int) -> Callable[..., Any]:
    if version not in cls.VERSIONS:
        raise ValueError(f"{cls.__name__} has no version {version}")
    made = generator(version, cls.FLEXIBLE_SINCE)
    exec(compile(made.source(cls), f"<{cls.__name__} v{version}>", "exec"), made.names)
    function: Callable[..., Any] = made.names["function"]
    return function
