"""`kgctl produce --transactional-id`: which lines are committed, however the input or the transaction ends."""

from __future__ import annotations

import csv
import io
import json
import signal

import pytest
from confluent_kafka import Producer as OtherProducer

from broker.local import LocalBroker
from broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kgctl.client.net.cluster import Ask
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl
from tests.harness.streaming import running, until


def made(kgctl: Kgctl) -> str:
    topic = fresh("written")
    assert kgctl("topics", "create", topic).exit_code == 0
    return topic


def committed(kgctl: Kgctl, topic: str) -> list[str]:
    """What a read_committed reader sees."""
    words = ("consume", topic, "--from-beginning", "--until-end", "--isolation", "read_committed")
    return kgctl(*words).stdout.split()


def state(kgctl: Kgctl, name: str) -> str:
    return str(kgctl.rows("transactions", "describe", name)[0]["state"])


def test_each_n_lines_are_a_transaction(kgctl: Kgctl) -> None:
    topic, name = made(kgctl), fresh("tx")
    lines = "".join(f"{n}\n" for n in range(10))
    words = ("--transactional-id", name, "--transaction-records", 3)
    result = kgctl("produce", topic, *words, "-o", "json", text=lines)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert row["transactions"] == {
        "transactional_id": name,
        "committed": 4,
        "committed_line": 10,
        "outcome": "committed",
        "first_line": None,
        "last_line": None,
    }
    # A marker after each transaction takes an offset.
    assert row["partitions"] == [{"partition": 0, "records": 10, "first_offset": 0, "last_offset": 12}]
    assert f"10 records (10 bytes) committed to {topic} in 4 transactions" in result.stderr
    assert committed(kgctl, topic) == lines.split()
    assert state(kgctl, name) == "CompleteCommit"
    table = kgctl("produce", topic, *words, "-o", "csv", text=lines).stdout
    assert json.loads(next(iter(csv.DictReader(io.StringIO(table))))["transactions"]) == row["transactions"]


def test_a_bad_line_aborts_the_transaction_and_says_where_to_continue(kgctl: Kgctl) -> None:
    topic, name = made(kgctl), fresh("tx")
    lines = '{"value":"a"}\n{"value":"b"}\n{"value":"c"}\nbad\n'
    words = ("--transactional-id", name, "--transaction-records", 2, "--json")
    result = kgctl("produce", topic, *words, text=lines)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == [
        "Lines up to 2 are committed. The transaction of line 3 was aborted.",
        "Continue at line 3: tail -n +3 FILE | kgctl produce ...",
        "Error: line 4: not JSON: Expecting value (column 1)",
    ]
    assert committed(kgctl, topic) == ["a", "b"]
    again = kgctl("produce", topic, *words, text='{"value":"c"}\n')
    assert again.exit_code == 0
    assert committed(kgctl, topic) == ["a", "b", "c"]


def test_without_a_division_all_lines_are_committed_or_none(kgctl: Kgctl) -> None:
    topic, words = made(kgctl), ("--transactional-id", fresh("tx"))
    assert kgctl("produce", topic, *words, "--json", text='{"value":"a"}\n{"no":1}\n').exit_code == 1
    assert committed(kgctl, topic) == []
    assert kgctl("produce", topic, *words, text="a\nb\n").exit_code == 0
    assert committed(kgctl, topic) == ["a", "b"]
    assert kgctl("produce", topic, *words, text="").exit_code == 0


def test_ctrl_c_aborts_the_open_transaction(kgctl: Kgctl) -> None:
    topic, name = made(kgctl), fresh("tx")
    words = ("produce", topic, "--transactional-id", name, "--transaction-records", 3)
    with running(str(kgctl.bootstrap), *words) as producing:
        pipe = producing.program.stdin
        assert pipe is not None
        pipe.write(b"1\n2\n3\n4\n")
        pipe.flush()
        until(lambda: committed(kgctl, topic) == ["1", "2", "3"] and state(kgctl, name) == "Ongoing", "a transaction")
        producing.interrupt(signal.SIGINT)
        code, stderr = producing.wait()
    assert code == 130
    assert "Lines up to 3 are committed. The transaction of line 4 was aborted." in stderr
    assert "Continue at line 4" in stderr
    assert state(kgctl, name) in ("CompleteAbort", "PrepareAbort")
    assert committed(kgctl, topic) == ["1", "2", "3"]


def test_a_transaction_ends_after_some_seconds_although_the_input_goes_on(kgctl: Kgctl) -> None:
    topic, name = made(kgctl), fresh("tx")
    words = ("produce", topic, "--transactional-id", name, "--transaction-seconds", 0.05)
    with running(str(kgctl.bootstrap), *words) as producing:
        pipe = producing.program.stdin
        assert pipe is not None
        for line in ("1", "2"):
            pipe.write(f"{line}\n".encode())
            pipe.flush()
            until(lambda seen=line: committed(kgctl, topic)[-1:] == [seen], "a commit")  # type: ignore[misc]
        code, stderr = producing.wait()
    assert code == 0
    assert "in 2 transactions" in stderr


def test_a_newer_producer_fences_this_one(kgctl: Kgctl) -> None:
    topic, name = made(kgctl), fresh("tx")
    with running(str(kgctl.bootstrap), "produce", topic, "--transactional-id", name) as producing:
        pipe = producing.program.stdin
        assert pipe is not None
        pipe.write(b"1\n")
        pipe.flush()
        until(lambda: name in kgctl("transactions", "list", "--state", "Ongoing").stdout, "a transaction")
        newer = OtherProducer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": name})
        newer.init_transactions(30)
        code, stderr = producing.wait()
    assert code == 6
    assert "No line is committed. The transaction of line 1 was aborted." in stderr
    assert f"Error: another producer with transactional id '{name}' has started" in stderr
    assert committed(kgctl, topic) == []


def test_without_a_broker_the_outcome_of_the_last_lines_is_open() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        words = ("produce", made(kgctl), "--timeout", 1, "--transactional-id")
        with (
            running(kgctl.bootstrap or "", *words, "a") as committing,
            running(kgctl.bootstrap or "", *words, "b") as aborting,
        ):
            for producing in (committing, aborting):
                assert producing.program.stdin is not None
                producing.program.stdin.write(b"1\n2\n")
                producing.program.stdin.flush()
            until(lambda: kgctl("transactions", "list").stdout.count("Ongoing") == 2, "two transactions")
            broker.kill()
            aborting.interrupt()
            code, stderr = committing.wait()
            assert code == 3
            assert (
                "No line is committed. Whether lines 1 to 2 are committed is unknown.\nIf `kgctl transactions" in stderr
            )
            code, stderr = aborting.wait()
            assert code == 130
            assert (
                "The transaction of lines 1 to 2 could not be aborted.\nThe broker aborts it 60 s after its start"
                in stderr
            )


def test_a_timeout_above_the_brokers_is_a_usage_error(kgctl: Kgctl) -> None:
    words = ("--transactional-id", fresh("tx"), "--transaction-timeout", 86_400)
    result = kgctl("produce", made(kgctl), *words, text="a\n")
    assert result.exit_code == 2
    assert "longer than transaction.max.timeout.ms of the broker" in result.stderr


def test_brokers_with_the_older_protocol_are_written_to_as_well() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        _set_level(kgctl, 1)
        topic, words = made(kgctl), ("--transactional-id", "tx", "--transaction-records", 2)
        assert kgctl("produce", topic, *words, text="1\n2\n3\n").exit_code == 0
        assert kgctl("produce", topic, *words, "--json", text='{"value":"4"}\nbad\n').exit_code == 1
        assert kgctl("produce", topic, *words, text="5\n").exit_code == 0
        assert committed(kgctl, topic) == ["1", "2", "3", "5"]


def _set_level(kgctl: Kgctl, level: int) -> None:
    update = UpdateFeaturesRequest.Update(feature="transaction.version", max_version_level=level, upgrade_type=2)
    with kgctl.admin() as admin:
        node = admin.run(admin.cluster.controller())
        request = UpdateFeaturesRequest(feature_updates=[update])
        assert admin.run(admin.cluster.ask(Ask(node.endpoint, request, UpdateFeaturesResponse))).error_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--transaction-records", "3"],
        ["--transaction-timeout", "3"],
        ["--transactional-id", "x", "--acks", "1"],
        ["--transactional-id", "x", "--no-idempotence"],
        ["--transactional-id", "x", "--transaction-records", "3", "--transaction-seconds", "1"],
        ["--transactional-id", "x", "--transaction-seconds", "60"],
        ["--transactional-id", "x", "--transaction-seconds", "3", "--transaction-timeout", "3"],
        ["--transactional-id", "x", "--transaction-timeout", "1e7"],
        ["--transactional-id", ""],
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(words: list[str]) -> None:
    assert Kgctl("127.0.0.1:1")("produce", "t", *words, text="a\n").exit_code == 2
