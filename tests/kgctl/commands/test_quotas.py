"""`kgctl quotas` on a running cluster."""

from __future__ import annotations

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl
from tests.harness.running import until


def test_a_quota_is_set_listed_and_removed_after_a_plan(kgctl: Kgctl) -> None:
    user = fresh("u")
    setting = ["quotas", "set", "--user", user, "producer_byte_rate=1048576", "request_percentage=12.5"]
    planned = kgctl(*setting)
    assert planned.exit_code == 0
    assert [line.split() for line in planned.stdout.splitlines()[1:]] == [
        [user, "producer_byte_rate", "-", "1048576", "planned"],
        [user, "request_percentage", "-", "12.5", "planned"],
    ]
    assert kgctl.rows("quotas", "list", "--user", user) == []
    assert [row["status"] for row in kgctl.rows(*setting, "--execute")] == ["done", "done"]
    # A broker of Kafka learns of a change from its controller.
    until(lambda: [row["status"] for row in kgctl.rows(*setting)] == ["same", "same"])
    found = kgctl.rows("quotas", "list", "--user", user)
    assert [(row["quota"], row["value"]) for row in found] == [
        ("producer_byte_rate", 1048576.0),
        ("request_percentage", 12.5),
    ]
    (removed,) = kgctl.rows("quotas", "remove", "producer_byte_rate", "--user", user, "--execute")
    assert (removed["old_value"], removed["new_value"], removed["status"]) == (1048576.0, None, "done")
    until(lambda: kgctl("quotas", "remove", "producer_byte_rate", "--user", user).exit_code == 5)
    assert len(kgctl.rows("quotas", "remove", "--user", user, "--execute")) == 1
    until(lambda: kgctl.rows("quotas", "list", "--user", user) == [])
    assert kgctl("quotas", "list", "--user", user).stderr == "The entity has no quotas.\n"
    assert kgctl("quotas", "remove", "--user", user, "--execute").exit_code == 5


def test_a_user_with_a_client_id_is_an_entity_of_its_own(kgctl: Kgctl) -> None:
    user = fresh("u")
    both = ["--user", user, "--client-id-default"]
    assert kgctl("quotas", "set", *both, "consumer_byte_rate=5", "--execute").exit_code == 0
    assert kgctl("quotas", "remove", "--user", user, "--execute").exit_code == 5
    (row,) = until(lambda: kgctl.rows("quotas", "list", "--user", user))
    assert (row["user"], row["client_id"], row["ip"]) == (user, "<default>", None)
    assert len(kgctl.rows("quotas", "remove", *both, "--execute")) == 1


def test_addresses_have_quotas(kgctl: Kgctl) -> None:
    done = kgctl("quotas", "set", "--ip", "10.0.0.7", "connection_creation_rate=20", "--execute", "--explain")
    assert done.exit_code == 0
    assert "--alter --entity-type ips --entity-name 10.0.0.7 --add-config connection_creation_rate=20" in done.stderr
    until(lambda: kgctl("quotas", "remove", "--ip", "10.0.0.7", "--execute").exit_code == 0)


def test_the_cluster_refuses_an_unknown_quota_in_the_plan(kgctl: Kgctl) -> None:
    refused = kgctl("quotas", "set", "--user", fresh("u"), "bytes=5")
    assert refused.exit_code == 1
    assert "bytes" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["set", "a=1"], "Name a user, a client id or both"),
        (["set", "--user", "u", "a=many"], "'many' is not a number for a"),
        (["set", "--user", "u", "--ip", "10.0.0.7", "a=1"], "cannot be combined with a user or a client id"),
        (["remove", "--user", "u", "--user-default"], "Give --user or --user-default, not both"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], sentence: str) -> None:
    refused = Kgctl()("quotas", *arguments)
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.split())
