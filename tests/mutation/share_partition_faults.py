"""Faults of share partitions, sessions and ShareFetch: records that are lost, delivered twice, or held for nobody."""

from __future__ import annotations

from tests.mutation.faults import Fault

PARTITIONS = ("tests/broker/cores/share/test_walks.py", "tests/broker/cores/share/test_partition.py")
SESSIONS = ("tests/broker/cores/share/test_sessions.py", "tests/broker/server/test_share_sessions.py")
SOCKETS = ("tests/broker/server/test_share_fetch.py",)
STORED = ("tests/broker/cores/share/test_coordinator.py", "tests/broker/cores/share/test_state_batches.py")


def _fault(name: str, file: str, right: str, wrong: str, tests: tuple[str, ...]) -> Fault:
    return Fault(f"share partitions: {name}", f"{file}.py", right, wrong, tests)


SHARE_PARTITION_FAULTS = (
    _fault(
        "any member may acknowledge",
        "cores/share/acknowledgement",
        "        if one.member_id != member_id:\n",
        "        if False:\n",
        PARTITIONS,
    ),
    _fault(
        "a session that ends counts its deliveries",
        "cores/share/acknowledgement",
        "ended.release(delivery, first, last, counts=False)",
        "ended.release(delivery, first, last, counts=True)",
        PARTITIONS,
    ),
    _fault(
        "a refused acknowledgement keeps what came before it",
        "cores/share/acknowledgement",
        "            ended.undo()\n            return refusal\n    return ended.complete()",
        "            return refusal\n    return ended.complete()",
        PARTITIONS,
    ),
    _fault(
        "records are delivered without a limit",
        "cores/share/acknowledgement",
        "delivery.count >= self._partition.limits.deliveries",
        "False",
        PARTITIONS,
    ),
    _fault(
        "a newer state epoch does not fence writes",
        "cores/share/coordinator",
        "if NO_EPOCH != state_epoch < stored.state_epoch:",
        "if False:",
        STORED,
    ),
    _fault(
        "an answer leaves out a partition whose error is gone",
        "cores/share/sessions",
        "partition.must_answer = bool(row.error_code)",
        "partition.must_answer = False",
        SESSIONS,
    ),
    _fault(
        "the same partition comes first each time",
        "cores/share/sessions",
        "return partitions[at:] + partitions[:at]",
        "return partitions",
        SESSIONS,
    ),
    _fault(
        "a wrong epoch is taken",
        "cores/share/sessions",
        "        if epoch != session.epoch:\n            return ErrorCode.INVALID_SHARE_SESSION_EPOCH\n        for",
        "        for",
        SESSIONS,
    ),
    _fault(
        "a session that opens may acknowledge",
        "cores/share/sessions",
        "        if has_acknowledgements:\n            return ErrorCode.INVALID_REQUEST\n",
        "",
        SESSIONS,
    ),
    _fault(
        "a closed session keeps its records",
        "server/share_runner",
        "self._ended(partition, self._step(release, partition, session_key.member_id))",
        "pass",
        SOCKETS,
    ),
    _fault(
        "share groups that are disabled keep their sessions",
        "server/share_runner",
        "        self.sessions.clear()\n",
        "",
        SOCKETS,
    ),
    _fault(
        "a batch above the limit starves behind an empty partition",
        "server/handlers/share_fetch",
        "at_least_one=not has_any",
        "at_least_one=not found",
        SOCKETS,
    ),
    _fault(
        "a damaged record stops the broker",
        "server/handlers/share_fetch",
        "_UNREADABLE = DamageError, OutOfDescriptors",
        "_UNREADABLE = (OutOfDescriptors,)",
        SOCKETS,
    ),
    _fault(
        "aborted records are delivered",
        "server/handlers/share_fetch",
        "aborted = _aborted(each) if self._committed else []",
        "aborted: list[AbortedFrom] = []",
        SOCKETS,
    ),
)
