"""Kafka's wire types as SQL expressions over a binary column: numbers, texts, and walks over any number of fields.

Positions are bigint and count from 1, as in SQL. No expression raises an error: malformed bytes give null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from pyspark.sql import Column
from pyspark.sql import functions as f

# Kafka's readers refuse longer texts; the older encoding cannot express them.
_TEXT_BYTES = 2**15 - 1
_VARINT_BYTES = 5


class Step(IntEnum):
    """One field that a walk skips; COMPACT fields are those of flexible versions. A text must be UTF-8."""

    TEXT = 1
    TEXT_OR_NULL = 2
    BYTES = 3
    INT32 = 4
    INT64 = 5
    COMPACT_TEXT = 6
    COMPACT_TEXT_OR_NULL = 7
    COMPACT_BYTES = 8
    TAGGED_FIELDS = 9


def int16(binary: Column, at: Column) -> Column:
    """int; null if there are fewer than two bytes."""
    return f.when(_holds(binary, at, 2), _sign_extended(_unsigned(binary, at, 2), 16)).cast("int")


def int32(binary: Column, at: Column) -> Column:
    """int; null if there are fewer than four bytes."""
    return f.when(_holds(binary, at, 4), _sign_extended(_unsigned(binary, at, 4), 32)).cast("int")


def int64(binary: Column, at: Column) -> Column:
    """bigint; null if there are fewer than eight bytes."""
    # With a negative base, conv returns a signed number.
    number = f.conv(f.hex(f.substring(binary, at.cast("int"), f.lit(8))), 16, -10)
    return f.when(_holds(binary, at, 8), number.cast("bigint"))


def text(binary: Column, at: Column, size: Column) -> Column:
    """The text of `size` bytes; null if they are missing or not UTF-8, or if the size is null or negative."""
    found = f.substring(binary, at.cast("int"), size.cast("int")).cast("string")
    return f.when(_holds(binary, at, size), f.try_validate_utf8(found))


def uvarint(binary: Column, at: Column) -> Column:
    """struct<value bigint, next bigint>; `next` is the position after it. Null for more than five bytes or 32 bits."""
    start = f.struct(f.lit(0).cast("bigint").alias("value"), at.alias("next"), f.lit(True).alias("continues"))

    def with_byte(read: Column, number: Column) -> Column:
        def added(byte: Column) -> Column:
            value = read["value"] + f.call_function("shiftleft", byte.bitwiseAND(f.lit(127)), number)
            return f.struct(value.alias("value"), (read["next"] + 1).alias("next"), (byte > 127).alias("continues"))

        return f.when(read["continues"], bound(_unsigned(binary, read["next"], 1), added)).otherwise(read)

    shifts = f.array(*[f.lit(7 * number) for number in range(_VARINT_BYTES)])

    def whole(read: Column) -> Column:
        return f.when(
            ~read["continues"] & (read["value"] < 2**32),
            f.struct(read["value"].alias("value"), read["next"].alias("next")),
        )

    return f.aggregate(shifts, start, with_byte, whole)


def compact_text(binary: Column, at: Column) -> Column:
    """struct<value string, next bigint> of a text that is not null; null if it is malformed."""

    def found(length: Column) -> Column:
        size = length["value"] - 1
        read = f.when(size <= _TEXT_BYTES, text(binary, length["next"], size))
        return f.struct(read.alias("value"), (length["next"] + size).alias("next"))

    return bound(uvarint(binary, at), found)


def walk(binary: Column, steps: Column, start: Column) -> Column:
    """The position after the fields in `steps`, an array of `Step`; null if the bytes do not hold such fields."""
    return f.aggregate(steps, start, lambda at, step: _after(binary, at, step))


def steps(names: Iterable[Step]) -> Column:
    return f.array(*[f.lit(int(name)) for name in names])


def bound(value: Column, body: Callable[[Column], Column]) -> Column:
    """`body` of a value that is computed once, however often the body uses it."""
    # Spark compiles transform and aggregate to Java, but neither zip_with nor the expressions inside it. With all these walks
    # compiled into it, the method for a row was too long for the JIT compiler: every commit took twice the time.
    return f.zip_with(f.array(value), f.array(f.lit(None)), lambda found, _: body(found))[0]


def _after(binary: Column, at: Column, step: Column) -> Column:
    """The position after one field."""

    def length_of(size: Column, position: Column) -> Column:
        return f.struct(size.cast("bigint").alias("size"), position.alias("next"))

    def is_one_of(*names: Step) -> Column:
        return step.isin([int(name) for name in names])

    def passed(length: Column) -> Column:
        size, position = length["size"], length["next"]
        is_text = is_one_of(Step.TEXT, Step.TEXT_OR_NULL, Step.COMPACT_TEXT, Step.COMPACT_TEXT_OR_NULL)
        is_null = is_one_of(Step.TEXT_OR_NULL, Step.COMPACT_TEXT_OR_NULL) & (size == -1)
        is_whole = f.when(is_text, (size <= _TEXT_BYTES) & text(binary, position, size).isNotNull())
        return (
            f.when(is_null, position)
            .when(step == int(Step.TAGGED_FIELDS), _after_tagged_fields(binary, position, size))
            .when(is_whole.otherwise(_holds(binary, position, size)), position + size)
        )

    # The varint is the count of tagged fields, or the size plus one of any other field.
    one = f.when(step == int(Step.TAGGED_FIELDS), 0).otherwise(1)
    compact = bound(uvarint(binary, at), lambda read: length_of(read["value"] - one, read["next"]))
    length = (
        f.when(is_one_of(Step.TEXT, Step.TEXT_OR_NULL), length_of(int16(binary, at), at + 2))
        .when(step == int(Step.BYTES), length_of(int32(binary, at), at + 4))
        .when(step == int(Step.INT32), length_of(f.lit(4), at))
        .when(step == int(Step.INT64), length_of(f.lit(8), at))
        .otherwise(compact)
    )
    return bound(length, passed)


def _after_tagged_fields(binary: Column, at: Column, count: Column) -> Column:
    """Each tagged field is two varints, its tag and its size, and then that many bytes."""

    def one(position: Column, is_size: Column) -> Column:
        def passed(read: Column) -> Column:
            there = f.when(_holds(binary, read["next"], read["value"]), read["next"] + read["value"])
            return f.when(is_size, there).otherwise(read["next"])

        return bound(uvarint(binary, position), passed)

    # Each takes at least two bytes: a corrupt count must not create a huge array.
    possible = count * 2 <= f.octet_length(binary) - at + 1
    varints = f.flatten(f.array_repeat(f.array(f.lit(False), f.lit(True)), count.cast("int")))
    return f.when(possible, f.aggregate(varints, at, one))


def _holds(binary: Column, at: Column, size: Column | int) -> Column:
    enough = at + size - 1 <= f.octet_length(binary)
    return enough if isinstance(size, int) else enough & (size >= 0)


def _unsigned(binary: Column, at: Column, size: int) -> Column:
    return f.conv(f.hex(f.substring(binary, at.cast("int"), f.lit(size))), 16, 10).cast("bigint")


def _sign_extended(number: Column, bits: int) -> Column:
    return f.shiftright(f.shiftleft(number, 64 - bits), 64 - bits)
