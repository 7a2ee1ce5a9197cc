"""The options of `kgctl consume` about its group, checked, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from broker.light_dataclasses import dataclass
from kgctl.commands.records.consume_options import CommitMode, Delivery, GroupProtocol
from kgctl.commands.records.source import Source

if TYPE_CHECKING:
    from kgctl.client.consumer.group.settings import GroupSettings
    from kgctl.commands.records.offset_commits import CommitPolicy

DEFAULT_SESSION_TIMEOUT = 45.0
DEFAULT_ASSIGNORS = ("range", "roundrobin")


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """As they were given; None for options without a value. Times are in seconds."""

    group: str | None
    protocol: GroupProtocol | None
    session_timeout: float | None
    instance_id: str | None
    assignors: tuple[str, ...]
    commit: CommitMode | None
    commit_interval: float | None
    delivery: Delivery | None
    notices: bool

    def check(self, source: Source, has_numbers: bool) -> None:
        """BadParameter for what cannot be meant. `has_numbers`: --partition is given."""
        of_members: dict[str, object] = {
            "--group-protocol": self.protocol,
            "--group-instance-id": self.instance_id,
            "--assignor": self.assignors,
            "--notices": self.notices,
        }
        of_commits: dict[str, object] = {
            "--commit": self.commit,
            "--commit-interval": self.commit_interval,
            "--delivery": self.delivery,
        }
        if self.group is None:
            _refuse(of_members | of_commits, "needs --group.")
        elif has_numbers:
            raise typer.BadParameter(
                "cannot be combined with --group, which assigns the partitions. To commit offsets without joining the"
                " group, name partitions as TOPIC:PARTITION.",
                param_hint="'--partition'",
            )
        elif source.partitions is not None:
            _refuse(of_members, "needs a member of the group; with TOPIC:PARTITION, the group is not joined.")
        if not self.is_classic and self.session_timeout is not None:
            raise typer.BadParameter(
                "the broker decides it with --group-protocol consumer (group.consumer.session.timeout.ms, or"
                " consumer.session.timeout.ms of the group).",
                param_hint="'--session-timeout'",
            )
        if not self.is_classic and len(self.assignors) > 1:
            raise typer.BadParameter(
                "can be given once with --group-protocol consumer: it names an assignor of the broker.",
                param_hint="'--assignor'",
            )
        if self.commit_interval is not None and (self._commits_before or self.commit not in (None, CommitMode.AUTO)):
            raise typer.BadParameter("is for --commit auto.", param_hint="'--commit-interval'")
        if self._commits_before and self.commit is not None:
            raise typer.BadParameter(
                "cannot be combined with --delivery at-most-once, which commits before it prints.",
                param_hint="'--commit'",
            )

    @property
    def is_classic(self) -> bool:
        """The members assign the partitions."""
        return self.protocol is not GroupProtocol.CONSUMER

    @property
    def _commits_before(self) -> bool:
        return self.delivery is Delivery.AT_MOST_ONCE

    def policy(self) -> CommitPolicy:
        from kgctl.commands.records.offset_commits import CommitPolicy, When

        if self.group is None or self.commit is CommitMode.NONE:
            return CommitPolicy(When.NEVER)
        if self._commits_before:
            return CommitPolicy(When.BEFORE)
        if self.commit is CommitMode.SYNC:
            return CommitPolicy(When.AFTER)
        return (
            CommitPolicy(When.REGULARLY)
            if self.commit_interval is None
            else CommitPolicy(When.REGULARLY, self.commit_interval)
        )

    def settings(self) -> GroupSettings | None:
        """For the consumer, which leaves commits to the command."""
        from kgctl.client.consumer.group.settings import GroupSettings

        if self.group is None:
            return None
        if not self.is_classic:
            return GroupSettings(
                self.group,
                group_instance_id=self.instance_id,
                protocol="consumer",
                remote_assignor=self.assignors[0] if self.assignors else None,
                auto_commit=False,
            )
        session_timeout_ms = int((self.session_timeout or DEFAULT_SESSION_TIMEOUT) * 1000)
        return GroupSettings(
            self.group,
            group_instance_id=self.instance_id,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=max(1, min(3000, session_timeout_ms // 3)),
            auto_commit=False,
        )


def _refuse(given: dict[str, object], reason: str) -> None:
    for option, value in given.items():
        if value not in (None, False, ()):
            raise typer.BadParameter(reason, param_hint=f"'{option}'")
