"""Faults of share partitions and share groups, which the simulated worlds must show."""

from __future__ import annotations

from tests.mutation.faults import Fault

WORLDS = ("tests/broker/server/test_share_worlds.py",)


def _fault(name: str, path: str, right: str, wrong: str) -> Fault:
    return Fault(f"share worlds: {name}", path, right, wrong, WORLDS)


SHARE_WORLD_FAULTS = (
    _fault(
        "a record is available while a member has it",
        "cores/share/acquisition.py",
        "            if batch.whole.state is not RecordState.AVAILABLE:\n                return\n",
        "            if batch.whole.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):\n                return\n",
    ),
    _fault(
        "what is acknowledged is not stored",
        "cores/share/acknowledgement.py",
        "        refusal = self._partition.write(self._batches)\n",
        "        refusal = None\n",
    ),
    _fault(
        "a release at the end of a session counts as a delivery",
        "cores/share/acknowledgement.py",
        "            self.end(delivery, first, last, RecordState.AVAILABLE, delivery.count - 1)\n",
        "            self.end(delivery, first, last, RecordState.AVAILABLE, delivery.count)\n",
    ),
    _fault(
        "a record is delivered without limit",
        "cores/share/acknowledgement.py",
        "delivery.count >= self._partition.limits.deliveries",
        "delivery.count > self._partition.limits.deliveries",
    ),
    _fault(
        "a lock does not run out",
        "cores/share/acknowledgement.py",
        "                if delivery.deadline_ms <= now_ms:\n",
        "                if delivery.deadline_ms <= 0:\n",
    ),
    _fault(
        "a record that was acquired again has the deadline of its first acquisition",
        "cores/share/acknowledgement.py",
        "                if delivery.deadline_ms <= now_ms:\n",
        "                if True:\n",
    ),
    _fault(
        "the start offset moves over records that are not finished",
        "cores/share/partition.py",
        "                if delivery.state not in FINISHED:\n                    return found\n",
        "                if delivery.state is RecordState.ACQUIRED:\n                    return found\n",
    ),
    _fault(
        "a gap that is read last holds a full partition",
        "cores/share/partition.py",
        "            self._move_behind_all()\n",
        "            pass\n",
    ),
    _fault(
        "gaps from before a restart are skipped",
        "cores/share/partition.py",
        "            self.gap = _Gap(self.end_offset, gap_start)\n",
        "            self.gap = None\n",
    ),
    _fault(
        "a snapshot forgets the batches before the last change",
        "cores/share/coordinator.py",
        "            combine([*stored.batches, *batches], new_start),\n",
        "            combine(batches, new_start),\n",
    ),
    _fault(
        "an update replaces the batches",
        "cores/share/coordinator.py",
        "        stored.batches = combine([*stored.batches, *batches], stored.start_offset)\n",
        "        stored.batches = combine(batches, stored.start_offset)\n",
    ),
    _fault(
        "of two states of a record the one with fewer deliveries is kept",
        "cores/share/state_batches.py",
        "heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))",
        "heappush(covering, (-batch.delivery_state, -batch.delivery_count, batch.last_offset))",
    ),
    _fault(
        "an answer does not wait for the flush of the states",
        "server/share_runner.py",
        "        self._log.append_rows(SHARE_STATE_TOPIC, rows)\n",
        "        self._loop.call_later(0.2, self._log.append_rows, SHARE_STATE_TOPIC, rows)\n",
    ),
)
