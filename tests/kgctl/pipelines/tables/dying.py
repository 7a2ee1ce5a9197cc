"""A program whose children write a batch, or only open the table, and die before their Nth file system call.

It forks one child for each line of its standard input, and prints the child's exit code: 9: it died; 0: it finished.
A line is a JSON list: table folder, N, batch id ("-": only open the table), Parquet files, planted fault
("names-first": files are renamed before the commit).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from pathlib import Path

from kgctl.pipelines.tables import manifest
from kgctl.pipelines.tables.manifest import StagedFile, TableFolder, Writer

CALLS = ("open", "os.", "shutil.", "fcntl.")
DIED = 9
ROWS_PER_FILE = 3


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


def write(folder: Path, nth: int, batch_id: str, parquet_files: list[Path], fault: str) -> None:
    if fault == "names-first":
        plant_names_first(TableFolder(folder))
    left = nth

    def count(event: str, _: object) -> None:
        nonlocal left
        if event.startswith(CALLS):
            left -= 1
            if left == 0:
                os._exit(DIED)

    sys.addaudithook(count)
    with TableFolder(folder).writing() as writer:
        if batch_id != "-":
            put(writer, batch_id, parquet_files)


def plant_names_first(table: TableFolder) -> None:
    write = manifest._write

    def write_late(path: Path, batch: manifest.Batch) -> None:
        table.rename_files(batch)
        write(path, batch)

    manifest._write = write_late


def main() -> None:
    for line in sys.stdin:
        folder, nth, batch_id, files, fault = json.loads(line)
        child = os.fork()
        if not child:
            try:
                write(Path(folder), nth, batch_id, [Path(name) for name in files], fault)
                os._exit(0)
            except BaseException:  # noqa: BLE001  a child must not go on with the loop
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
