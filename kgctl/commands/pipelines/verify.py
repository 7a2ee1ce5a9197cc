"""`kgctl pipeline verify`: checks an archive, alone or against a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError
from kgctl.commands.pipelines.replay_options import State
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import Settings, settings
from kgctl.exit_codes import ERROR
from kgctl.pipelines.runner import check_installed
from kgctl.render import TABLES as TABLE_OUTPUTS
from kgctl.render import note
from kgctl.watch.figures import counted

if TYPE_CHECKING:
    from kgctl.client.net.connector import ConnectionSettings

EPILOG = (
    "Exit codes: those of kgctl; 1 the archive is damaged or incomplete, or differs from the cluster, 5 there is no archive, 6 there is no fault, but a topic cannot be compared with the cluster."
    "\n\n"
    + examples(
        "kgctl pipeline verify archive",
        "kgctl pipeline verify archive --against prod",
        "kgctl pipeline verify archive --against 127.0.0.1:9092 -o json",
    )
)


@shows("pipeline-verify")
@local
def verify(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The archive.")],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="CLUSTER",
            help="Also compare every record with this cluster: the name of a context, or HOST:PORT.",
        ),
    ] = None,
    accept_holes: Annotated[
        bool,
        typer.Option(
            "--accept-holes",
            help="List offsets that retention deleted before they were archived, but do not count them as faults.",
        ),
    ] = False,
    state: State = None,
) -> None:
    """Check an archive, alone or against a cluster.

    Checks manifests, checksums and records, and that no offset is missing or archived twice. Prints one row per finding.
    Records that the cluster has since deleted or compacted away are information, not faults. On another cluster, --against
    finds the records that `kgctl pipeline replay` has written there.
    """
    if state is not None and against is None:
        raise typer.BadParameter("Give it with --against.", param_hint="'--state'")
    check_installed(("pyarrow", "numpy"))
    from kgctl.pipelines.archive.manifest import kept_in_place
    from kgctl.pipelines.archive.verifying import verify as verify_archive

    connection = None if against is None else _connection(against, settings(ctx))
    ctx.with_resource(kept_in_place(folder))
    verified = verify_archive(folder, accepts_holes=accept_holes)
    findings = list(verified.findings)
    refused: KgctlError | None = None
    if connection is not None and verified.archive.commits:
        from kgctl.pipelines.archive.comparing import NotCompared, compare

        try:
            for row in compare(verified.archive, connection, state, verified.damaged):
                findings.append(row)
        except NotCompared as error:
            refused = error
        except Exception:
            # What the archive itself shows does not depend on the cluster.
            if findings:
                settings(ctx).show(findings, kind="pipeline-verify")
            raise
    if findings or settings(ctx).output not in TABLE_OUTPUTS:
        settings(ctx).show(findings, kind="pipeline-verify")
    faults = sum(1 for row in findings if row.ok is False)
    contents = (
        f"{counted(verified.records, 'record')} of {counted(len(verified.archive.partitions), 'partition')} in "
        f"{counted(verified.files, 'file')}, {counted(verified.gaps, 'offset')} without a record"
    )
    result = f"{counted(faults, 'fault')}." if faults else "No fault found."
    note(f"{folder}: {contents}. {result}")
    if faults:
        raise typer.Exit(ERROR)
    if refused is not None:
        raise refused


def _connection(cluster: str, chosen: Settings) -> ConnectionSettings:
    from kgctl.contexts.connecting import connection_to
    from kgctl.contexts.target import Given, choose

    is_address = ":" in cluster
    words = ("--against",) * 3
    given = Given(cluster if is_address else None, None if is_address else cluster, None, words)
    target = choose(given)
    chosen.use(target)
    return connection_to(target, timeout=chosen.timeout)
