"""`kgctl transactions` and `kgctl producers`, on transactions of another client."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, opened
from tests.harness.running import until


def made(kgctl: Kgctl, partitions: int = 1) -> str:
    topic = fresh("orders")
    assert kgctl("topics", "create", topic, "--partitions", partitions).exit_code == 0
    return topic


def committed(kgctl: Kgctl, topic: str) -> str:
    """The transactional id of a transaction whose markers are written, which may be later than the answer to its commit."""
    with opened(kgctl, topic) as (name, producer):
        producer.commit_transaction(30)
    until(lambda: kgctl.rows("transactions", "describe", name)[0]["state"] == "CompleteCommit")
    return name


def test_a_listing_has_age_and_partitions_of_open_transactions(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    done = committed(kgctl, topic)
    with opened(kgctl, topic) as (name, _):
        rows = {row["transactional_id"]: row for row in kgctl.rows("transactions", "list")}
        assert list(rows) == sorted(rows)
        assert (rows[done]["state"], rows[done]["age_ms"], rows[done]["partitions"]) == ("CompleteCommit", None, None)
        assert (rows[name]["state"], rows[name]["partitions"]) == ("Ongoing", 1)
        assert rows[name]["age_ms"] >= 0

        def listed(*words: object) -> set[str]:
            found = {row["transactional_id"] for row in kgctl.rows("transactions", "list", *words)}
            return found & {done, name}

        assert listed("--state", "ongoing,PrepareAbort") == {name}
        assert listed("--producer-id", rows[done]["producer_id"]) == {done}
        assert listed("--id-pattern", f"{name}|{done[:-1]}") == {name}
        assert listed("--transactional-id-pattern", "tx-.*") == {done, name}
        # Kafka lists idle ids too.
        assert listed("--older-than", 0) == {name}
        assert listed("--older-than", 3600) == set()
        table = kgctl("transactions", "list", "--id-pattern", name).stdout.splitlines()
    header = "TRANSACTIONAL-ID COORDINATOR PRODUCER-ID STATE             AGE      #PARTITIONS"
    assert table[0].split() == header.split()
    assert table[1].split()[0] == name


def test_a_description_names_the_partitions_and_who_waits_there(kgctl: Kgctl) -> None:
    topic = made(kgctl, 2)
    with opened(kgctl, topic) as (name, _):
        assert kgctl("produce", topic, "--partition", 0, text="behind\n").exit_code == 0
        (row,) = kgctl.rows("transactions", "describe", name)
        shown = kgctl("transactions", "describe", name)
        (below,) = kgctl.rows("transactions", "describe", name, "--partitions")
        (producer, other) = kgctl.rows("producers", "describe", f"{topic}:0")
        sentences = kgctl("producers", "describe", f"{topic}:0,1").stderr
    assert (row["state"], row["timeout_ms"], row["partitions"]) == (
        "Ongoing",
        60_000,
        [{"topic": topic, "partitions": [0]}],
    )
    assert f"{topic}-0" in shown.stdout
    assert shown.stderr.startswith(f"read_committed readers of {topic}-0 wait at offset 0: 4 records, for ")
    assert f"because of the open transaction of transactional id '{name}'." in shown.stderr
    assert sentences.startswith(f"read_committed readers of {topic}-0 wait at offset 0: 4 records, for ")
    assert (below["start_offset"], below["last_stable_offset"], below["log_end_offset"]) == (0, 0, 4)
    assert below["waiting_records"] == 4
    assert (producer["transactional_id"], producer["start_offset"], producer["last_sequence"]) == (name, 0, 2)
    assert (other["transactional_id"], other["start_offset"], other["error"]) == (None, None, None)


def test_an_idle_transaction_holds_nobody(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    name = committed(kgctl, topic)
    shown = kgctl("transactions", "describe", name)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert kgctl.rows("transactions", "describe", name, "--partitions") == []
    assert kgctl("producers", "describe", f"{topic}:0").stderr == ""


def test_what_does_not_exist_is_named(kgctl: Kgctl) -> None:
    for words in (["transactions", "describe", "no-id"], ["transactions", "abort", "no-id"]):
        missing = kgctl(*words)
        assert missing.exit_code == 5
        assert "Error: Transactional id 'no-id' does not exist." in missing.stderr
    topic = made(kgctl)
    assert kgctl("producers", "describe", f"{topic}:7").exit_code == 5
    assert kgctl("producers", "describe", f"{topic}:0", "--broker-id", 99).exit_code == 5
    assert kgctl("transactions", "find-hanging", "--topic", fresh("absent")).exit_code == 5
    assert kgctl("transactions", "find-hanging", "--topic", topic, "--partition", 7).exit_code == 5
    hanging = kgctl("transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset", 3)
    assert hanging.exit_code == 5
    assert f"{topic}-0 has no open transaction that starts at offset 3" in hanging.stderr


def test_a_group_that_lags_behind_an_open_transaction_is_warned_about(kgctl: Kgctl) -> None:
    topic, waiting, beyond = made(kgctl), fresh("waiting"), fresh("beyond")
    assert kgctl("produce", topic, text="before\n").exit_code == 0
    with opened(kgctl, topic) as (name, _):
        kgctl.commit(waiting, topic, p0=0)
        kgctl.commit(beyond, topic, p0=2)
        told = kgctl("groups", "describe", waiting)
        assert kgctl("groups", "describe", waiting, "--state").stderr.count("Warning") == 0
        assert "Warning" not in kgctl("groups", "describe", beyond).stderr
    assert told.exit_code == 0
    assert f"Warning: 3 of the 4 records that group '{waiting}' lags in {topic}-0 are held, for " in told.stderr
    assert f"by the open transaction of transactional id '{name}'; read_committed consumers wait" in told.stderr
    assert "Warning" not in kgctl("groups", "describe", waiting).stderr


def test_an_abort_fences_the_producer(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    reading = ("consume", topic, "--from-beginning", "--until-end", "--isolation", "read_committed")
    with opened(kgctl, topic) as (name, producer):
        plan = kgctl("transactions", "abort", name)
        assert (plan.exit_code, "planned" in plan.stdout) == (0, True)
        assert f"The producer of transactional id '{name}' will be fenced" in plan.stderr
        assert "Dry run: nothing was changed." in plan.stderr
        assert kgctl.rows("transactions", "describe", name)[0]["state"] == "Ongoing"
        done = kgctl("transactions", "abort", name, "--execute", "-o", "csv")
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines()[1].startswith(f"fence,{name},")
        assert kgctl("transactions", "describe", name).stderr == ""
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
        again = kgctl("transactions", "abort", name, "--execute")
        assert again.exit_code == 6
        assert f"transactional id '{name}' has no open transaction" in again.stderr
    assert kgctl("produce", topic, text="after\n").exit_code == 0
    assert kgctl(*reading).stdout.split() == ["after"]


def test_a_transaction_with_a_coordinator_does_not_hang(kgctl: Kgctl) -> None:
    topic = made(kgctl)
    with opened(kgctl, topic) as (name, _):
        found = kgctl("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", 0)
        assert (found.exit_code, found.stderr) == (0, "Found 0 hanging transactions.\n")
        words = ("transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
        refused = kgctl(*words, "--execute")
        assert refused.exit_code == 6
        assert f"that of transactional id '{name}' (Ongoing)" in refused.stderr
        assert kgctl.rows("producers", "describe", f"{topic}:0")[0]["start_offset"] == 0
        forced = kgctl(*words, "--force", "--execute")
        assert forced.exit_code == 0, forced.output
        assert f"An abort marker ended the transaction in {topic}-0" in forced.stderr
        assert kgctl.rows("producers", "describe", f"{topic}:0")[0]["start_offset"] is None


@pytest.mark.parametrize(
    "words",
    [
        ["transactions", "list", "--state", "Open"],
        ["transactions", "list", "--id-pattern", "("],
        ["transactions", "find-hanging", "--partition", "0"],
        ["transactions", "abort"],
        ["transactions", "abort", "x", "--topic", "t"],
        ["transactions", "abort", "x", "--start-offset", "1"],
        ["transactions", "abort", "x", "--force"],
        ["transactions", "abort", "--topic", "t", "--partition", "0"],
        ["transactions", "abort", "--topic", "t", "--partition", "0", "--producer-id", "1"],
        ["producers", "describe", "orders"],
    ],
)
def test_incomplete_arguments_are_a_usage_error(words: list[str]) -> None:
    assert Kgctl("127.0.0.1:1")(*words).exit_code == 2
