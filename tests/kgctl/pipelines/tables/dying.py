"""A program whose children change a table, and die before their Nth change of the file system.

It forks one child for each line of its standard input, and prints the child's exit code: 9: it died; 0: it finished.
A line is a JSON list: table folder, N, action, Parquet files, variants. An action is "open", "fold", "merge",
"merge-two" (of each day two files), "drop DATE" (the day and those before it), or "write ID". Variants: "names-first": files are renamed before the commit (a fault);
"no-exchange": the file system cannot exchange folders; "fold-often": after every third commit.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from datetime import date
from pathlib import Path

from kgctl.pipelines.schemas.model import Column, Table
from kgctl.pipelines.tables import durable, manifest
from kgctl.pipelines.tables.manifest import StagedFile, TableFolder, Writer
from kgctl.pipelines.tables.merge_plans import Merge, all_small
from kgctl.pipelines.tables.merging import merge
from kgctl.pipelines.tables.retention import drop
from kgctl.pipelines.tables.state import batch_from_json

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
DIED = 9
ROWS_PER_FILE = 3
TABLE = Table("commits", "rows", (Column("a", "string", "a row"),), day_of="a")


def put(writer: Writer, batch_id: str, parquet_files: list[Path]) -> bool:
    """Commit files as Spark leaves them: a folder for each day, Parquet files, and other files beside them."""
    staging = writer.stage(batch_id)
    files = []
    for number, source in enumerate(parquet_files):
        file = StagedFile(f"date=2024-01-0{number + 1}/part-00000-c000.zstd.parquet", ROWS_PER_FILE)
        (staging / file.path).parent.mkdir(parents=True)
        shutil.copyfile(source, staging / file.path)
        files.append(file)
    (staging / "_SUCCESS").touch()
    return writer.commit(batch_id, staging, files, {"until": 7})


def act(folder: Path, action: str, parquet_files: list[Path]) -> None:
    verb, _, argument = action.partition(" ")
    if verb == "merge":
        merge(folder, TABLE, all_small, 0)
    elif verb == "merge-two":
        merge(folder, TABLE, lambda state: [Merge(one.day, one.files[:2]) for one in all_small(state)], 0)
    elif verb == "drop":
        drop(folder, -1, 0, date.fromisoformat(argument))
    else:
        with TableFolder(folder).writing() as writer:
            if verb == "write":
                put(writer, argument, parquet_files)
            elif verb == "fold":
                writer.fold()


def act_and_die(folder: Path, nth: int, action: str, parquet_files: list[Path], variants: str) -> None:
    if "names-first" in variants:
        plant_names_first(TableFolder(folder))
    if "no-exchange" in variants:
        durable._renameat2 = lambda *_: False
    if "fold-often" in variants:
        manifest.FOLD_AT = 3
    left = nth

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        # Beside a call that only reads, the disk is as it was before.
        if event in CHANGES or (event == "open" and int(str(arguments[2])) & TO_WRITE):
            left -= 1
            if left == 0:
                os._exit(DIED)

    sys.addaudithook(count)
    act(folder, action, parquet_files)


def plant_names_first(table: TableFolder) -> None:
    write = manifest.write_durably

    def write_late(path: Path, content: bytes) -> None:
        table.rename_files(batch_from_json(path, content))
        write(path, content)

    manifest.write_durably = write_late


def main() -> None:
    for line in sys.stdin:
        folder, nth, action, files, variants = json.loads(line)
        child = os.fork()
        if not child:
            try:
                act_and_die(Path(folder), nth, action, [Path(name) for name in files], variants)
                os._exit(0)
            except BaseException:  # noqa: BLE001  a child must not go on with the loop
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
