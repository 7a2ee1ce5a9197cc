"""The `uniform` assignor: as many partitions for each member, and as few moved ones, as possible.

The results are those of Kafka's UniformAssignor. It has two algorithms, one for groups in which all members subscribe to the same topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.cores.groups.assignors.interface import Assignment, MemberSpec, TopicDescriber


class UniformAssignor:
    """Ignores racks, as Kafka 4.1 does."""

    name = "uniform"

    def assign(
        self, members: Mapping[str, MemberSpec], is_homogeneous: bool, topics: TopicDescriber
    ) -> dict[str, Assignment]:
        if is_homogeneous:
            from broker.cores.groups.assignors.uniform_homogeneous import assign_homogeneous

            return assign_homogeneous(members, topics)
        from broker.cores.groups.assignors.uniform_heterogeneous import Heterogeneous

        return Heterogeneous(members, topics).assign()
