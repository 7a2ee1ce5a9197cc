"""`kgctl compat kafka-transactions` on our broker: what the tool shows of an open transaction, and how it ends one."""

from __future__ import annotations

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, opened


def test_an_open_transaction_is_listed_described_and_aborted(our_cluster: Cluster) -> None:
    def tool(*words: object) -> list[list[str]]:
        server = ("--bootstrap-server", our_cluster.bootstrap_servers)
        done = Kgctl()("compat", "--ak-exit-codes", "kafka-transactions", *server, *words)
        assert done.exit_code == 0, done.output
        return [[cell.strip() for cell in line.split("\t")] for line in done.stdout.splitlines()]

    kgctl, topic = Kgctl(our_cluster.bootstrap_servers), fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    with opened(kgctl, topic) as (name, _):
        # The tool takes the beginning of an option for the option.
        header, (listed, _, producer, state, end) = tool("list", "--transactional-id", name)
        assert header == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState", ""]
        assert (listed, state, end) == (name, "Ongoing", "")
        _, described = tool("describe", "--transactional-id", name)
        assert (described[1], described[2], described[4], described[8]) == (name, producer, "Ongoing", f"{topic}-0")
        place = ("--topic", topic, "--partition", 0)
        assert tool("describe-producers", *place)[1][:1] == [producer]
        assert tool("describe-producers", *place)[1][5] == "0"
        # Its coordinator knows it: it does not hang.
        assert len(tool("find-hanging", "--topic", topic, "--max-transaction-timeout", 0)) == 1
        assert tool("abort", *place, "--start-offset", 0) == []
        assert tool("describe-producers", *place)[1][5] == "None"


def test_an_ambiguous_beginning_of_an_option_is_refused(our_cluster: Cluster) -> None:
    words = ("--bootstrap-server", our_cluster.bootstrap_servers, "abort", "--producer", "1")
    done = Kgctl()("compat", "--ak-exit-codes", "kafka-transactions", *words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "ambiguous option: --producer could match producer-id, producer-epoch" in done.stderr
