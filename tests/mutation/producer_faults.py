"""Faults of the producer."""

from __future__ import annotations

from tests.mutation.faults import Fault

CORE = (
    "tests/kgctl/client/producer/test_sender.py",
    "tests/kgctl/client/producer/test_transactions.py",
    "tests/kgctl/client/producer/test_accumulator.py",
)


def fault(name: str, file: str, right: str, wrong: str) -> Fault:
    return Fault(name, f"client/producer/core/{file}", right, wrong, CORE, "kgctl")


PRODUCER_FAULTS = (
    fault(
        "a retry gets ahead of the batches before it",
        "idempotence.py",
        "return not pending or pending[0] is batch",
        "return True",
    ),
    fault(
        "the second batch of an unknown producer may overtake the first",
        "idempotence.py",
        "is_known = lane.known_id == self.identity.producer_id",
        "is_known = True",
    ),
    fault(
        "new records follow a batch of which nobody knows the outcome",
        "idempotence.py",
        "        if partition in self.unresolved:\n            return False\n",
        "",
    ),
    fault(
        "a gap in the log is no reason for a new epoch",
        "idempotence.py",
        "if lane.next_position != lane.acked_end:",
        "if False:",
    ),
    fault(
        "requests for memory overtake each other",
        "buffer.py",
        "elif not self._waiting and size_bytes <= self.free_bytes:",
        "elif size_bytes <= self.free_bytes:",
    ),
    fault(
        "a batch that failed keeps its memory",
        "sender.py",
        "            self._producer.failed(batch, error, is_refused=is_refused)\n        self._accumulator.release(batch)",
        "            self._producer.failed(batch, error, is_refused=is_refused)",
    ),
    fault(
        "a late answer settles a batch that has expired",
        "sender.py",
        "if waiting is None or batch not in waiting:",
        "if waiting is None:",
    ),
    fault(
        "a transaction ends before its batches are acknowledged",
        "transactions.py",
        "if step.priority is Priority.END and has_incomplete:",
        "if False:",
    ),
    fault(
        "a commit goes on after a batch has failed",
        "transactions.py",
        "if self.failure is not None and self.state in (State.MUST_ABORT, State.FATAL):",
        "if self.failure is not None and self.state is State.FATAL:",
    ),
    fault(
        "records leave before their partition is part of the transaction",
        "transactions.py",
        "return self.state is not State.FATAL and partition in self.partitions",
        "return self.state is not State.FATAL",
    ),
    fault(
        "another call may follow one that has timed out",
        "transactions.py",
        "            self._check_pending(operation)\n        outcome = start()",
        "        outcome = start()",
    ),
)
