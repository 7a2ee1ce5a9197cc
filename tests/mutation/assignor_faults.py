"""Faults of the assignors and of the simulations of rebalancing."""

from __future__ import annotations

from tests.mutation.faults import Fault

ASSIGNORS = ("tests/kgctl/client/consumer/assignors",)
LAB = ("tests/kgctl/lab",)


def fault(name: str, path: str, right: str, wrong: str, tests: tuple[str, ...] = ASSIGNORS) -> Fault:
    return Fault(name, path, right, wrong, tests, "kgctl")


ASSIGNOR_FAULTS = (
    fault(
        "a cooperative member gets what another still owns",
        "client/consumer/assignors/sticky.py",
        "[partition for partition in share if transferring.get(partition) != member_id]",
        "list(share)",
    ),
    fault(
        "a claim of an older generation counts",
        "client/consumer/assignors/owners.py",
        "if other is None or data.generation_id > theirs:",
        "if other is None or data.generation_id != theirs:",
    ),
    fault(
        "two members keep what both claim",
        "client/consumer/assignors/owners.py",
        "                if other is not None:\n                    self.owned[other].pop(partition, None)\n",
        "",
    ),
    fault(
        "partitions that no longer exist stay with their members",
        "client/consumer/assignors/owners.py",
        "if not 0 <= partition.partition < partition_counts.get(partition.topic, 0):",
        "if partition.topic not in partition_counts:",
    ),
    fault(
        "too many members keep the larger share",
        "client/consumer/assignors/constrained.py",
        "elif kept >= self._high and self._over < self._extra:",
        "elif kept >= self._high:",
    ),
    fault(
        "a former owner gets a topic that it has unsubscribed from",
        "client/consumer/assignors/general.py",
        "            and partition.topic in self._topics[former]\n",
        "",
    ),
    fault(
        "an imbalance of two is left",
        "client/consumer/assignors/general.py",
        "return smallest if size > self._sizes[smallest] + 1 else None",
        "return smallest if size > self._sizes[smallest] + 2 else None",
    ),
    fault(
        "racks matter even if every rack has every partition",
        "client/consumer/assignors/racks.py",
        "and any(set(racks) != every for racks in racks_of_partitions)",
        "",
    ),
    fault(
        "co-partitioned topics get different members",
        "client/consumer/assignors/range.py",
        "        groups.setdefault((topic.member_ids, topic.count), []).append(topic)\n",
        "        groups.setdefault((topic.member_ids, len(groups)), []).append(topic)\n",
    ),
    fault(
        "static members come last",
        "client/consumer/assignors/assignor.py",
        "return instance is None, java_order(",
        "return instance is not None, java_order(",
    ),
    fault(
        "an assignor of the wrong kind is accepted",
        "client/consumer/assignors/loading.py",
        "        if not callable(getattr(assignor, method, None)):\n",
        "        if False:\n",
    ),
    fault(
        "a paused process keeps working",
        "lab/world.py",
        "        return self.is_alive and not self.is_paused\n",
        "        return self.is_alive\n",
        LAB,
    ),
    fault(
        "messages reach a process that is cut off",
        "lab/world.py",
        "        if not self.is_cut_off:\n            self._run(incarnation, action, arguments)\n",
        "        self._run(incarnation, action, arguments)\n",
        LAB,
    ),
    fault(
        "a second owner does not count",
        "lab/ledger.py",
        "                self._double += count > 1\n",
        "                self._double += count > 2\n",
        LAB,
    ),
)
