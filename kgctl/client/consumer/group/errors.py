"""What can go wrong between a consumer and its group, beyond what a broker answers."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError


class CommitFailed(KgctlError):
    """The group did not take the commit, and will not: the member left it or was removed. Poll to rejoin."""

    name = "COMMIT_FAILED"


class RebalanceInProgress(KgctlError):
    """The commit did not happen because the group rebalances. Call poll until it ends, then commit what is still assigned."""

    name = "REBALANCE_IN_PROGRESS"


class FencedInstance(KgctlError):
    """Another consumer joined with the same group.instance.id (KIP-345). This one has to stop."""

    is_final = True
    name = "FENCED_INSTANCE_ID"

    def __init__(self, instance_id: str | None, member_id: str) -> None:
        super().__init__(
            f"another consumer has joined with group.instance.id {instance_id!r}; this one (member {member_id!r}) is fenced;"
            " give each consumer its own group.instance.id"
        )


class StaleEpoch(KgctlError):
    """The commit was on its way when the member got another epoch (KIP-848): the same commit succeeds with that."""

    retriable = True
    name = "STALE_MEMBER_EPOCH"

    def __init__(self, error: KgctlError) -> None:
        super().__init__(str(error))


class CoordinatorUnknown(KgctlError):
    """The coordinator of the group is being looked up again."""

    retriable = True
    name = "COORDINATOR_NOT_AVAILABLE"
