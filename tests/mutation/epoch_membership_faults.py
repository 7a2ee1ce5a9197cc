"""Faults of the membership of kgctl's consumer in groups of the consumer protocol."""

from __future__ import annotations

from tests.mutation.faults import Fault

TESTS = (
    "tests/kgctl/client/consumer/membership/test_consumer_protocol.py",
    "tests/kgctl/client/consumer/membership/test_consumer_protocol_simulation.py",
)
ROOM = "client/consumer/group/consumer_protocol"


def _fault(name: str, file: str, right: str, wrong: str) -> Fault:
    return Fault(f"consumer protocol: {name}", f"{ROOM}/{file}", right, wrong, TESTS, "kgctl")


EPOCH_MEMBERSHIP_FAULTS = (
    _fault(
        "partitions are acknowledged before they are revoked",
        "reconciliation.py",
        "        assigned, owned = self._partitions(target), subscription.assigned\n",
        "        assigned, owned = self._partitions(target), subscription.assigned\n"
        "        membership.has_reconciled(target, self.now_ms)\n",
    ),
    _fault(
        "records of partitions that are to be revoked are fetched while their offsets are committed",
        "reconciliation.py",
        "            subscription.mark_pending_revocation(revoked)\n",
        "",
    ),
    _fault(
        "a member that was fenced while its listener ran takes over the assignment",
        "reconciliation.py",
        "            return incarnation == membership.incarnation and not membership.generation.owns_nothing\n",
        "            return True\n",
    ),
    _fault(
        "a fenced member keeps its partitions",
        "reconciliation.py",
        "        self._give_up(owned)\n        if error is not None:",
        "        if error is not None:",
    ),
    _fault(
        "a member that joins again says only what changed",
        "membership.py",
        "        self._contents.forget()\n        self.heartbeat.reset(now_ms)\n",
        "        self.heartbeat.reset(now_ms)\n",
    ),
    _fault(
        "topics without a name are given up",
        "reconciliation.py",
        " and bool(known or not self._membership.target)",
        "",
    ),
    _fault(
        "the names of new topics are not asked for",
        "reconciliation.py",
        "                    self._metadata.request_update()\n",
        "                    pass\n",
    ),
    _fault(
        "an answer of an earlier membership counts",
        "membership.py",
        "            if incarnation == self.incarnation and self.state is not MemberState.UNJOINED:\n",
        "            if True:\n",
    ),
    _fault(
        "a failed heartbeat does not make the next one complete",
        "membership.py",
        "        self._contents.forget()\n        self.heartbeat.failed(now_ms)\n        if code in MOVED:",
        "        self.heartbeat.failed(now_ms)\n        if code in MOVED:",
    ),
    _fault(
        "a lost heartbeat does not make the next one complete",
        "membership.py",
        "            self._contents.forget()\n            self.heartbeat.failed(now_ms)\n            if answer.is_final",
        "            self.heartbeat.failed(now_ms)\n            if answer.is_final",
    ),
    _fault(
        "a static member leaves for good",
        "membership.py",
        "LEAVE if self.settings.is_dynamic else LEAVE_FOR_A_WHILE",
        "LEAVE",
    ),
    _fault(
        "a member whose application does not poll stays in the group",
        "membership.py",
        "        if self.heartbeat.poll_expired(now_ms):\n",
        "        if False:\n",
    ),
    _fault(
        "heartbeats end with the session timeout of classic groups",
        "membership.py",
        "        self.heartbeat.session_timeout_ms = _FOREVER_MS\n",
        "",
    ),
    _fault(
        "what a heartbeat has given up while the member commits is taken over",
        "reconciliation.py",
        "                target = _without_stale(target, membership.owned, membership.target or {})\n",
        "",
    ),
)
