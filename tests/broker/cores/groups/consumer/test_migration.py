"""Members of both protocols come and go in any order, with restarts: nobody owns what another owns, and everything comes to rest."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.cores.groups.consumer.group import ConsumerGroup
from tests.broker.cores.groups.consumer.classic_clients import Classic
from tests.broker.cores.groups.consumer.clients import Client
from tests.broker.cores.groups.world import World

NAMES = ("a", "b", "c")
KINDS = ("eager", "cooperative", "consumer")
ROUNDS = 40


class MigrationMachine(RuleBasedStateMachine):
    """Clients that act by the rules. A new client of the same name has another protocol, and may be a static member."""

    @initialize(is_static=st.booleans())
    def start(self, is_static: bool) -> None:
        self.world = World(topics={"orders": 5})
        self.is_static = is_static
        self.clients: dict[str, Classic | Client] = {}
        self.started = 0

    @rule(name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS))
    def change(self, name: str, kind: str) -> None:
        """The client of this name stops, and one of this kind takes its place. Static members leave no place free."""
        former = self.clients.pop(name, None)
        instance = f"instance-{name}" if self.is_static else None
        if isinstance(former, Client):
            if former.epoch > 0:
                former.leave(-2 if instance and kind == "consumer" else -1)
        elif former is not None and former.member_id and not instance:
            former.leave()
        self.started += 1
        client_id = f"{name}{self.started}"
        if kind == "consumer":
            fields = {"instance_id": instance} if instance else {}
            self.clients[name] = Client(self.world, client_id, fields=fields)
        else:
            # All have one protocol: of a classic group, a restart finds only the selected one.
            self.clients[name] = Classic(self.world, client_id, instance=instance, is_cooperative=kind == "cooperative")

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    def act(self, names: list[str]) -> None:
        for name in names:
            self._turn(name)

    @rule()
    def restart(self) -> None:
        self.world.start()
        for client in self.clients.values():
            if isinstance(client, Classic):
                client.ticket = None  # the connection has ended; a member that was joining or syncing joins again

    @rule()
    def come_to_rest(self) -> None:
        if not self.clients:
            return
        # A restart brings a member back that had left just before it; its session has to end.
        for _ in range(ROUNDS):
            for name in NAMES:
                self._turn(name)
            self.world.let_pass(2_000)
        got = sorted(partition for client in self.clients.values() for partition in _owned(client))
        # As in Kafka, a static member that changes its protocol during a rebalance ends it: what has no owner waits for the next one.
        assert self.is_static or got == list(range(self.world.topics["orders"]))
        group = self.world.core.group("g")
        assert group is not None
        assert (group.state_name, group.member_count) == ("Stable", len(self.clients))
        has_consumers = any(isinstance(client, Client) for client in self.clients.values())
        assert isinstance(group, ConsumerGroup) == has_consumers

    def _turn(self, name: str) -> None:
        client = self.clients.get(name)
        if isinstance(client, Classic):
            client.turn()
        elif client is not None and client.beat().error_code:
            client.epoch, client.owned, client.told = 0, {}, {}

    @invariant()
    def nobody_owns_what_another_owns(self) -> None:
        owned = [partition for client in self.clients.values() for partition in _owned(client)]
        assert len(owned) == len(set(owned)), self.clients

    @invariant()
    def no_generation_is_ahead_of_the_group(self) -> None:
        group = self.world.core.group("g")
        if group is not None and group.member_count:
            # A restart finds the last generation that was stored, and up to which ones were learned.
            highest = max(group.generation, self.world.floors.get("g", 0))
            for client in self.clients.values():
                assert (client.epoch if isinstance(client, Client) else client.generation) <= highest


def _owned(client: Classic | Client) -> list[int]:
    names = client.names if isinstance(client, Client) else client.owned
    return names.get("orders", [])


TestMigrationMachine = MigrationMachine.TestCase
TestMigrationMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
