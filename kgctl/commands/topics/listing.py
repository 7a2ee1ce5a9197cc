"""`kgctl topics list`: topics with their partition and replica counts."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.classic import option
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import TOOL

EPILOG = examples("kgctl topics list", "kgctl topics list --exclude-internal -o json")


@shows("topics")
@reads
def list_topics(
    ctx: typer.Context,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out internal topics such as __consumer_offsets.")
    ] = False,
) -> None:
    """List topics with their partition and replica counts.

    If the cluster has ACLs, these are the topics that you may describe.
    """
    settings(ctx).explain_as(TOOL, "--list", *option("--exclude-internal", exclude_internal))
    with settings(ctx).admin() as admin:
        rows = [row for row in admin.list_topics() if not (exclude_internal and row.internal)]
    settings(ctx).show(rows, kind="topics")
