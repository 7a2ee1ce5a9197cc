"""`kgctl cluster describe`: brokers, features, API versions, log directories."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.render import note

EPILOG = examples(
    "kgctl cluster describe",
    "kgctl cluster describe -o wide",
    "kgctl cluster describe --features",
    "kgctl cluster describe --log-dirs -o json",
)


@shows("cluster-brokers", "cluster-features", "cluster-apis", "log-dirs")
@reads
def describe(
    ctx: typer.Context,
    features: Annotated[bool, typer.Option("--features", help="Show features and their levels instead.")] = False,
    api_versions: Annotated[
        bool, typer.Option("--api-versions", help="Show the requests that each broker serves instead.")
    ] = False,
    log_dirs: Annotated[
        bool, typer.Option("--log-dirs", help="Show the log directories of each broker instead.")
    ] = False,
) -> None:
    """Show brokers with addresses, racks and log directories.

    * marks the controller. RELEASE is the release of Kafka to which the metadata are finalized (metadata.version);
    brokers do not report the version of their software. -o wide adds the cluster id, listeners and log directories.
    """
    only_one({"--features": features, "--api-versions": api_versions, "--log-dirs": log_dirs})
    chosen = settings(ctx)
    if features:
        chosen.explain_as("kafka-features.sh", "describe")
        with chosen.admin() as admin:
            chosen.show(admin.features(), kind="cluster-features")
        return
    if api_versions:
        chosen.explain_as("kafka-broker-api-versions.sh")
        with chosen.admin() as admin:
            apis = admin.api_versions()
        chosen.show(apis, kind="cluster-apis")
        conclude((row.error for row in apis), len(apis))
        return
    if log_dirs:
        chosen.explain_as("kafka-log-dirs.sh", "--describe")
        with chosen.admin() as admin:
            found = admin.log_dirs()
        chosen.show(found, kind="log-dirs")
        conclude((row.error for row in found), len(found))
        return
    chosen.explain_as("kafka-cluster.sh", "list-endpoints")
    with chosen.admin() as admin:
        rows, missing = admin.describe_cluster()
    chosen.show(rows, kind="cluster-brokers")
    for one in missing:
        note(f"Some columns are empty: {one.message}")
    conclude((row.error for row in rows), len(rows))
