"""A program that writes a batch, or only opens the table, and dies before its Nth file system call.

python -m tests.kgctl.pipelines.tables.dying TABLE_FOLDER N BATCH_ID PARQUET_FILE...    (batch id "-": only opens the table)
Exit code 9: it died; 0: it finished. FAULT=names-first plants a fault: files are renamed before the commit.
"""

from __future__ import annotations

import os
import shutil
import sys
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


def main(folder: Path, nth: int, batch_id: str, parquet_files: list[Path]) -> None:
    if os.environ.get("FAULT") == "names-first":
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], [Path(name) for name in sys.argv[4:]])
