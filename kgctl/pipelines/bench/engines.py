"""The same query in each engine: commits per partition of a group and hour, with the first and the last offset.

An engine runs the query twice in its own process: once cold, once warm.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from broker.light_named_tuples import NamedTuple
from kgctl.pipelines.bench.children import end_with_parent

HOUR_MS = 3_600_000


class Found(NamedTuple):
    """What all engines must agree on: rows of the result, commits, sums of the offsets, bytes of the group names."""

    rows: int
    commits: int
    first: int
    last: int
    name_bytes: int


def spark(path: Path, stack: ExitStack) -> Callable[[], Found]:
    from pyspark.sql import functions as f

    from kgctl.pipelines.settings import RunSettings
    from kgctl.pipelines.spark.session import open_session
    from kgctl.pipelines.transforms import wire

    log = str(path.with_suffix(".log"))
    session = stack.enter_context(open_session(RunSettings((), "", str(path.parent), log_file=log)))

    def query() -> Found:
        raw = session.read.parquet(str(path))
        commits = raw.where((f.substring("key", 1, 2) == f.lit(b"\x00\x01")) & f.col("value").isNotNull())
        at = f.floor(wire.int64(f.col("value"), f.lit(17)) / HOUR_MS)
        committed = commits.select("key", at.alias("hour"), wire.int64(f.col("value"), f.lit(3)).alias("committed"))
        by_key = committed.groupBy("key", "hour").agg(
            f.count("*").alias("n"), f.min("committed").alias("first"), f.max("committed").alias("last")
        )
        key = f.col("key")
        named = by_key.withColumn("name", wire.text(key, f.lit(5), wire.int16(key, f.lit(3)).cast("bigint")))
        row = named.agg(f.count("*"), f.sum("n"), f.sum("first"), f.sum("last"), f.sum(f.length("name"))).first()
        assert row is not None
        return Found(*map(int, row))

    return query


def duckdb(path: Path, stack: ExitStack) -> Callable[[], Found]:
    import duckdb as engine

    connection = stack.enter_context(engine.connect())
    number = "('0x' || hex(value[{}:{}]))::UBIGINT::BIGINT"
    sql = f"""
        with commits as (
            select key, {number.format(17, 24)} // {HOUR_MS} as hour, {number.format(3, 10)} as committed
            from read_parquet(?) where key[1:2] = '\\x00\\x01'::blob and value is not null),
        by_key as (select key, hour, count(*) n, min(committed) first, max(committed) last from commits group by all),
        named as (select n, first, last, decode(key[5:4 + ('0x' || hex(key[3:4]))::int]) as name from by_key)
        select count(*), sum(n), sum(first), sum(last), sum(length(name)) from named"""

    def query() -> Found:
        row = connection.execute(sql, [str(path)]).fetchone()
        assert row is not None
        return Found(*map(int, row))

    return query


def polars(path: Path, stack: ExitStack) -> Callable[[], Found]:
    import polars as pl

    def number(column: str, at: int) -> Any:
        return pl.col(column).bin.slice(at, 8).bin.reinterpret(dtype=pl.Int64, endianness="big")

    def query() -> Found:
        commits = pl.scan_parquet(path).filter(
            pl.col("key").bin.starts_with(b"\x00\x01") & pl.col("value").is_not_null()
        )
        rows = commits.select(
            "key", (number("value", 16) // HOUR_MS).alias("hour"), number("value", 2).alias("committed")
        )
        by_key = rows.group_by("key", "hour").agg(
            pl.len().alias("n"), pl.col("committed").min().alias("first"), pl.col("committed").max().alias("last")
        )
        size = pl.col("key").bin.slice(2, 2).bin.reinterpret(dtype=pl.Int16, endianness="big")
        named = by_key.with_columns(pl.col("key").bin.slice(4, size).cast(pl.String).alias("name"))
        sums = [pl.col(name).cast(pl.Int128).sum() for name in ("n", "first", "last")]
        row = named.select(pl.len(), *sums, pl.col("name").str.len_chars().sum()).collect(engine="streaming").row(0)
        return Found(*map(int, row))

    return query


def python(path: Path, stack: ExitStack) -> Callable[[], Found]:
    import pyarrow.parquet as parquet

    unpack = struct.Struct(">q").unpack_from

    def query() -> Found:
        found: dict[tuple[bytes, int], list[int]] = {}
        for batch in parquet.ParquetFile(path).iter_batches(columns=["key", "value"]):
            for key, value in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                if value is None or not key.startswith(b"\x00\x01"):
                    continue
                committed, hour = unpack(value, 2)[0], unpack(value, 16)[0] // HOUR_MS
                row = found.get((key, hour))
                if row is None:
                    found[key, hour] = [1, committed, committed]
                else:
                    row[0] += 1
                    row[1] = min(row[1], committed)
                    row[2] = max(row[2], committed)
        names = sum(len(key[4 : 4 + int.from_bytes(key[2:4], "big")].decode()) for key, _ in found)
        sums = [sum(row[place] for row in found.values()) for place in range(3)]
        return Found(len(found), sums[0], sums[1], sums[2], names)

    return query


ENGINES: dict[str, Callable[[Path, ExitStack], Callable[[], Found]]] = {
    "spark": spark,
    "duckdb": duckdb,
    "polars": polars,
    "python": python,
}


def main(name: str, path: str) -> None:
    """Print one JSON line: the seconds of both runs, and the result."""
    with ExitStack() as stack:
        began = time.monotonic()
        query = ENGINES[name](Path(path), stack)
        found = query()
        first_s = time.monotonic() - began
        began = time.monotonic()
        again = query()
        warm_s = time.monotonic() - began
    assert again == found, f"{name} returns {found} and then {again}"
    # The children include Spark's JVM and its workers, which have ended by now.
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    measured = {
        "first_s": first_s,
        "warm_s": warm_s,
        "cpu_s": sum(used.ru_utime + used.ru_stime for used in (own, children)),
        "largest_rss_kib": max(own.ru_maxrss, children.ru_maxrss),
        "found": list(found),
    }
    sys.stdout.write(json.dumps(measured) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
