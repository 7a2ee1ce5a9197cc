"""`kgctl cluster set-feature`: give features of the cluster another level."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE
from kgctl.commands.shared.arguments import Execute, only_one
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import pairs
from kgctl.journal.items import features_changed

EPILOG = examples(
    "kgctl cluster set-feature share.version=1",
    "kgctl cluster set-feature share.version=1 --execute",
    "kgctl cluster set-feature share.version=0 --downgrade --execute",
)
_HINT = "'FEATURE=LEVEL'"
_MOST = 2**15 - 1


@shows("cluster-feature-changes")
@journaled
@changes(names="values", when="execute")
def set_feature(
    ctx: typer.Context,
    values: Annotated[list[str], typer.Argument(metavar="FEATURE=LEVEL...", show_default=False)],
    downgrade: Annotated[
        bool, typer.Option("--downgrade", help="Lower levels, unless the cluster would lose metadata.")
    ] = False,
    unsafe: Annotated[
        bool, typer.Option("--unsafe-downgrade", help="Lower levels even if the cluster loses metadata.")
    ] = False,
    execute: Execute = False,
) -> None:
    """Set the levels of features.

    `kgctl cluster describe --features` shows the features of a cluster and their levels. Level 0 disables a feature;
    share.version=1 enables share groups. Of several features, all are set or none. The cluster checks the plan.
    Clusters before Kafka 3.3 are refused.
    """
    only_one({"--downgrade": downgrade, "--unsafe-downgrade": unsafe})
    levels = {name: _level(name, text) for name, text in pairs(values, "FEATURE=LEVEL").items()}
    lower = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE if downgrade else None
    chosen = settings(ctx)
    command = ["downgrade", *["--unsafe"] * unsafe] if lower else ["upgrade"]
    named = [word for name, level in levels.items() for word in ("--feature", f"{name}={level}")]
    chosen.explain_as("kafka-features.sh", *command, *named)
    with chosen.admin() as admin:
        rows = admin.plan_features(levels, lower)
        if execute and not any(row.error for row in rows):
            plan = rows
            rows = keep(
                chosen,
                admin,
                "cluster set-feature",
                lambda: features_changed(plan),
                lambda: admin.change_features(plan, lower),
            )
    chosen.show(rows, kind="cluster-feature-changes")
    note_dry_run(execute, [row.error for row in rows], all_or_nothing=True)
    conclude((row.error for row in rows), len(rows))


def _level(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST):
        raise typer.BadParameter(f"{text!r} is not a level for {name}: give a whole number.", param_hint=_HINT)
    return int(text)
