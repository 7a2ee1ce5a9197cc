"""Faults of the membership of kgctl's consumer."""

from __future__ import annotations

from tests.mutation.faults import Fault

MEMBERS = ("tests/kgctl/client/consumer/membership",)


def _fault(name: str, path: str, right: str, wrong: str) -> Fault:
    return Fault(name, f"client/{path}", right, wrong, MEMBERS, "kgctl")


MEMBERSHIP_FAULTS = (
    _fault(
        "records are fetched before the listener learns of their partitions",
        "consumer/partition_state.py",
        "            and not self.pending_assigned_call\n",
        "",
    ),
    _fault(
        "positions move between the commit before a rebalance and the revocation",
        "consumer/group/rebalance.py",
        "            self._subscription.mark_pending_revocation(self._subscription.assigned)\n",
        "            pass\n",
    ),
    _fault(
        "partitions of an ended membership are revoked, not lost",
        "consumer/group/rebalance.py",
        "        if membership.generation.owns_nothing:\n            if owned:\n",
        "        if False:\n            if owned:\n",
    ),
    _fault(
        "a cooperative member that revoked does not rejoin",
        "consumer/group/rebalance.py",
        '            membership.request_rejoin(\n                "need to revoke partitions and re-join",\n',
        "            (lambda *texts: None)(\n",
    ),
    _fault(
        "an assignment that does not fit the subscription is taken over",
        "consumer/group/rebalance.py",
        "        if strangers := subscription.unsubscribed(assigned):\n",
        "        if strangers := []:\n",
    ),
    _fault(
        "an assignment of an ended generation is taken over",
        "consumer/group/rebalance.py",
        "membership.generation.is_reset or membership.stable_generation is None",
        "False",
    ),
    _fault(
        "a member whose application does not poll stays in the group",
        "consumer/group/membership.py",
        "        if self.heartbeat.poll_expired(now_ms):\n",
        "        if False:\n",
    ),
    _fault(
        "a fenced member takes its place back",
        "consumer/group/membership.py",
        "            forget = code == ErrorCode.UNKNOWN_MEMBER_ID\n",
        "            forget = code != ErrorCode.ILLEGAL_GENERATION\n",
    ),
    _fault(
        "a late answer to a heartbeat ends a newer generation",
        "consumer/group/membership.py",
        "        if is_about_generation and self.generation != sent:\n",
        "        if False:\n",
    ),
    _fault(
        "a static member leaves when it closes",
        "consumer/group/membership.py",
        "            self.settings.is_dynamic\n            and self.link.is_known\n",
        "            self.link.is_known\n",
    ),
    _fault(
        "a lost coordinator is looked up without pauses",
        "network/coordinator.py",
        "            self._pause(now_ms)  # a lookup may give the same node\n",
        "",
    ),
    _fault(
        "records that the application still processes are committed automatically",
        "consumer/group/commits.py",
        "    def advance(self, now_ms: int) -> None:\n        self._send_all(now_ms)\n",
        "    def advance(self, now_ms: int) -> None:\n        self.auto_commit_if_due(now_ms)\n        self._send_all(now_ms)\n",
    ),
    _fault(
        "a later commit overtakes one that waits for the coordinator",
        "consumer/group/commits.py",
        "            if not self._attempt(commit, now_ms):\n                return\n",
        "            self._attempt(commit, now_ms)\n",
    ),
    _fault(
        "a commit of an ended generation ends the rebalance",
        "consumer/group/commit_answers.py",
        "            if membership.generation != sent and membership.state is MemberState.PREPARING:\n",
        "            if False:\n",
    ),
    _fault(
        "offsets of open transactions are read",
        "consumer/group/committed.py",
        "version >= _STABLE_SINCE\n",
        "False\n",
    ),
    _fault(
        "a partition that the answer leaves out has no committed offset",
        "consumer/group/committed.py",
        '        return LeftOut(f"committed offset of {min(missing)}") if missing else None\n',
        "        return None\n",
    ),
    _fault(
        "a leader does not watch the topics of other members",
        "consumer/group/topics.py",
        "        if self._subscription.subscribe_group(topics):\n",
        "        if False:\n",
    ),
    _fault(
        "a leader assigns before it knows all topics",
        "consumer/group/leader.py",
        "        if not self._topics.knows(self._subscribed):\n            return None\n",
        "",
    ),
    _fault(
        "a cooperative assignor moves partitions that are still owned",
        "consumer/group/leader.py",
        "        if self._protocol is RebalanceProtocol.COOPERATIVE and self._assignor.name != _TRUSTED:\n",
        "        if False:\n",
    ),
    _fault(
        "a close waits for brokers that cannot be reached",
        "consumer/group/member.py",
        " or self._network.unreached_ms(now_ms) >= _OUT_OF_REACH_MS",
        "",
    ),
    _fault(
        "a close gives up while the broker restarts",
        "consumer/group/member.py",
        " >= _OUT_OF_REACH_MS",
        " >= 0",
    ),
)
