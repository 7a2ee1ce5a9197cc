"""Feeds of clusters: of the one that the command line names, and of contexts."""

from __future__ import annotations

from collections.abc import Callable

from broker.light_dataclasses import replace
from kgctl.client.net.connector import ConnectionSettings
from kgctl.contexts.connecting import connection_to
from kgctl.contexts.target import Given, Target, choose
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.protocol import Feed

# Takes the name of a context, or None for the cluster of the command line. It may run a command for a secret, so call it in a
# thread. Raises a KgctlError.
Connect = Callable[[str | None], Feed]


def feed_of(target: Target, connection: ConnectionSettings, *, read_only: bool) -> ClusterFeed:
    label = ClusterLabel(
        ",".join(map(str, connection.bootstrap)),
        target.name,
        target.color,
        read_only or target.is_read_only,
        target.must_confirm,
        target.command_options,
    )
    return ClusterFeed(connection, label)


def connecting(target: Target, connection: ConnectionSettings, *, timeout: float | None, read_only: bool) -> Connect:
    """`timeout` and `read_only` are those of the command line; they apply to every cluster."""

    def connect(context: str | None) -> Feed:
        if context is None:
            return feed_of(target, connection, read_only=read_only)
        chosen = choose(Given(context=context))
        found = replace(connection_to(chosen, timeout=timeout), trace=connection.trace)
        return feed_of(chosen, found, read_only=read_only)

    return connect
