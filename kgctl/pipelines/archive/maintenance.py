"""`kgctl pipeline maintain` for an archive: merges the small files of neighboring commits. Imports pyarrow only to merge."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.archive.join_plans import Join, all_small
from kgctl.pipelines.archive.layout import RECORDS, records_folder
from kgctl.pipelines.archive.manifest import read_archive, writing
from kgctl.pipelines.tables.maintenance import MERGE, WAIT_S, MergeMissing, Step
from kgctl.pipelines.tables.manifest import TableFolder, held_by_one_run
from kgctl.pipelines.tables.state import CommittedFile


def is_archive(out: Path) -> bool:
    return TableFolder(records_folder(out)).manifests.is_dir()


def plan(out: Path) -> list[Step]:
    """What `maintain` would do now. Raises NotFound, Damaged, Newer."""
    return [_step(one) for one in all_small(read_archive(out).commits) if one.merges]


def maintain(out: Path) -> list[Step]:
    """Merge, and return what was done. Raises Busy if a run uses the archive or a reader needs the files, MergeMissing, NotFound,
    Damaged, Newer, OSError. What was done before stays done."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MergeMissing("merging files needs pyarrow: pip install 'kgctl[arrow]'")
    from kgctl.pipelines.archive.joining import join_all

    read_archive(out)
    with held_by_one_run(out, "maintains this archive"), writing(out) as writer:
        done = join_all(writer, lambda commits: next(iter(all_small(commits)), None), WAIT_S)
        return [_step(one) for one in done if one.merges]


def refuse_retention() -> None:
    """Raises Precondition: a range of offsets whose records are gone would look like a loss."""
    raise Precondition("an archive keeps all of its records: --keep is for the tables of `kgctl pipeline run`")


def _step(join: Join) -> Step:
    files = tuple(
        CommittedFile(file.path.removeprefix(f"{RECORDS}/"), "", file.records, file.size) for file in join.merged
    )
    return Step(RECORDS, MERGE, files, len(join.merges))
