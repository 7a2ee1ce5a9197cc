"""`kgctl cluster doctor`: whether every broker can be reached, and what is wrong with the cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import named
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.exit_codes import CONDITION_NOT_MET
from kgctl.model.findings import FAIL_ON, is_as_bad
from kgctl.watch.cluster_doctor import examine

EPILOG = examples("kgctl cluster doctor", "kgctl cluster doctor --fail-on warning", "kgctl cluster doctor -o json")


@shows("cluster-findings")
@reads
def doctor(
    ctx: typer.Context,
    fail_on: Annotated[
        str,
        typer.Option("--fail-on", metavar="|".join(FAIL_ON), help="Exit with 3 if a finding is at least as bad."),
    ] = FAIL_ON[0],
) -> None:
    """Check brokers, partitions, internal topics, clocks and permissions.

    Connects to every broker at the address that it advertises. error means that a broker or a partition cannot be used;
    with one, the exit code is 3. Permissions are those of the principal of this connection.
    """
    (limit,) = named([fail_on], FAIL_ON, "--fail-on")
    chosen = settings(ctx)
    with chosen.admin() as admin:
        found = examine(admin.cluster_facts())
    chosen.show(found, kind="cluster-findings")
    if any(is_as_bad(one.severity, limit) for one in found):
        raise typer.Exit(CONDITION_NOT_MET)
