"""The formats of the store: how to recognize them, and the scripts that bring an older one up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

APPLICATION_ID = 0x6B67636C  # "kgcl"
FORMAT_VERSION = 9
# The script that turns format N - 1 into format N. Format 4 renames the file `watermark` (see commit_marker.py).
_SCRIPTS = {
    2: "schema_2.sql",
    3: "schema_3.sql",
    4: None,
    5: "schema_5.sql",
    6: "schema_6.sql",
    7: "schema_7.sql",
    8: "schema_8.sql",
    9: "schema_9.sql",
}


def first_script() -> str:
    """The statements that create a store of format 1."""
    return _read("schema.sql")


def migrations(version: int) -> Iterator[tuple[int, str]]:
    """Each format after `version`, and the statements that lead to it."""
    for newer in range(version + 1, FORMAT_VERSION + 1):
        name = _SCRIPTS[newer]
        yield newer, "" if name is None else _read(name)


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text()
