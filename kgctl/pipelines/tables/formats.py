"""The formats of tables. Parquet with kgctl's manifest needs nothing; the logs of Delta Lake and Iceberg need their packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.pipelines.tables.durable import write_durably
from kgctl.pipelines.tables.errors import Damaged
from kgctl.pipelines.tables.manifest import TableFolder

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
FORMATS = (PARQUET, DELTA, ICEBERG)
# The packages of each format; its extra has its name.
_PACKAGES = {PARQUET: (), DELTA: ("deltalake", "pyarrow"), ICEBERG: ("pyiceberg", "sqlalchemy", "pyarrow")}
# In the folder of all tables, if they are not Parquet with a manifest.
_MARK = "_format"


class FormatMissing(KgctlError):
    """The package of a format is not installed."""


def format_of(out: Path) -> str:
    """The format of the tables in a folder. Raises Damaged."""
    try:
        return (out / _MARK).read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return PARQUET
    except (UnicodeDecodeError, IsADirectoryError):
        raise Damaged(f"{out / _MARK} is damaged: it should name the format of the tables") from None


def check_format(out: Path, wanted: str, tables: list[str]) -> None:
    """Raises FormatMissing, or Precondition if the folder has tables in another format."""
    _check_installed(wanted)
    found = format_of(out)
    if found != wanted and any(open_table(out / name).state().committed for name in tables):
        raise Precondition(f"the tables in {out} have the format {found}: give --format {found}, or another --out")


def set_format(out: Path, wanted: str) -> None:
    """The caller holds the folder as a run does, and has checked it."""
    if format_of(out) != wanted:
        write_durably(out / _MARK, f"{wanted}\n".encode())


def open_table(folder: Path) -> TableFolder:
    """A table of a run, in the format of its folder. Raises FormatMissing."""
    name = format_of(folder.parent)
    if name == PARQUET:
        return TableFolder(folder)
    if name not in FORMATS:
        raise Precondition(f"{folder.parent}: the tables have the unknown format {name}; update kgctl")
    _check_installed(name)
    if name == DELTA:
        from kgctl.pipelines.tables.delta import DeltaFolder

        return DeltaFolder(folder)
    from kgctl.pipelines.tables.iceberg import IcebergFolder

    return IcebergFolder(folder)


def _check_installed(name: str) -> None:
    missing = [package for package in _PACKAGES[name] if importlib.util.find_spec(package) is None]
    if missing:
        raise FormatMissing(f"the format {name} needs {', '.join(missing)}: pip install 'kgctl[{name}]'")
