"""Assignors of a user, which tests load by `module:name`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    RebalanceProtocol,
    Subscription,
)


class EverythingToTheFirst(Assignor):
    name = "first"

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> dict[str, Assignment]:
        first, *others = sorted(members)
        everything = [partition for topic in cluster.partition_counts for partition in cluster.partitions(topic)]
        return {first: Assignment(everything)} | {other: Assignment(()) for other in others}


class OnlyCooperative(EverythingToTheFirst):
    name = "only-cooperative"
    protocols = (RebalanceProtocol.COOPERATIVE,)


class Nameless(EverythingToTheFirst):
    name = ""


class WithoutProtocols(EverythingToTheFirst):
    protocols = ()


class NotAnAssignor:
    name = "nothing"


class Demanding(EverythingToTheFirst):
    def __init__(self, zone: str) -> None:
        self.zone = zone


class Factories:
    @staticmethod
    def first() -> EverythingToTheFirst:
        return EverythingToTheFirst()


INSTANCE: Any = EverythingToTheFirst()
NUMBER = 5
