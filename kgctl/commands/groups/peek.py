"""`kgctl groups peek`: the records around the committed offsets of a group."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.groups.scope import Topics, scope_of
from kgctl.commands.shared.arguments import Group
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.transactions.holds import note_holds
from kgctl.model.peek import OPEN
from kgctl.model.topic_partition import TopicPartition
from kgctl.render import note

EPILOG = examples(
    "kgctl groups peek orders",
    "kgctl groups peek orders --topic orders:0 --before 0 --after 1",
    "kgctl groups peek orders --topic orders -o json",
)
_MOST = 1000


@shows("group-peek")
@reads
def peek(
    ctx: typer.Context,
    group: Group,
    topic: Topics = None,
    before: Annotated[
        int, typer.Option("--before", min=0, max=_MOST, metavar="N", help="Records before the committed offset.")
    ] = 3,
    after: Annotated[
        int, typer.Option("--after", min=0, max=_MOST, metavar="N", help="Records from the committed offset on.")
    ] = 3,
) -> None:
    """Show the records around the committed offsets of a group.

    > marks the first record that the group has not read: if a consumer is stuck, it usually fails on this one. Sentences
    on stderr say if a committed offset is out of range, has no record, or is inside an open or aborted transaction.
    In a share group it is the first record that is not done; some of those after it may be.

    Tables spell out control characters and shorten values; JSON has them whole, in base64 if they are not UTF-8.
    """
    wanted = dict(scope_of(ctx, topic, False, None, needed=True).topics) if topic else {}
    with settings(ctx).admin() as admin:
        rows = admin.peek(group, wanted, before, after)
        waiting = sorted({TopicPartition(row.topic, row.partition) for row in rows if row.transaction == OPEN})
        held = admin.holds(waiting) if waiting else {}
    settings(ctx).show(rows, kind="group-peek")
    for row in rows:
        if row.note:
            note(f"{row.note}.")
    note_holds([held[key] for key in sorted(held)])
    conclude((row.error for row in rows), len(rows))
