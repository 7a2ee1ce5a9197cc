"""kafka-transactions: parses; `list`, `describe` and `describe-producers`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from broker.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgctl.client.net.cluster import TRANSACTION, Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.hash_order import in_hash_order
from kgctl.compat.java_errors import JavaError, java_error, of_code
from kgctl.compat.options import Arguments, BadOption, Option, UsageError, parse
from kgctl.compat.tool import DIALECTS, Ended, Host, Session
from kgctl.compat.transactions.aborts import run_abort, run_force_terminate
from kgctl.compat.transactions.hanging import run_find_hanging
from kgctl.compat.transactions.table import Refused, show
from kgctl.model.topic_partition import TopicPartition

_LIST = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBE = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
_PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
_NOTHING = "None"
_FAILED = 1
# Of each command: its options, and those that it needs.
_COMMANDS: dict[str, tuple[tuple[Option, ...], tuple[str, ...]]] = {
    "list": ((Option("duration-filter", "number"), Option("transactional-id-pattern", "value")), ()),
    "describe": ((Option("transactional-id", "value"),), ("transactional-id",)),
    "describe-producers": (
        (Option("topic", "value"), Option("partition", "whole"), Option("broker-id", "whole")),
        ("topic", "partition"),
    ),
    "abort": (
        (
            Option("topic", "value"),
            *(Option(name, "whole") for name in ("partition", "coordinator-epoch")),
            *(Option(name, "number") for name in ("start-offset", "producer-id")),
            Option("producer-epoch", "short"),
        ),
        ("topic", "partition"),
    ),
    "find-hanging": (
        (
            Option("topic", "value"),
            *(Option(name, "whole") for name in ("partition", "broker-id")),
            Option("max-transaction-timeout", "whole", "15"),
        ),
        (),
    ),
    "forceTerminateTransaction": ((Option("transactionalId", "value"),), ("transactionalId",)),
}
# This tool names the commit of its release, too.
_COMMITS = {"3.9": "f745dfdcee2b9851", "4.1": "13f70256db3c994c"}
_NEW = ("forceTerminateTransaction",)
_COMMON = ("bootstrap-server", "command-config")


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    if "--version" in arguments:
        host.out(f"{DIALECTS[host.dialect]} (Commit:{_COMMITS[host.dialect]})\n")
        return Ended(0, 0)
    command, found = _parsed(arguments, host.dialect)
    try:
        servers, config = found.value("bootstrap-server"), found.value("command-config")
        with host.connect(servers, config, None) as admin:
            _ACTIONS[command](Session(host, admin), found)
    except JavaError as error:
        inner = error.cause or error
        host.err(f"{_about(command, found)}: {inner.message}. Enable debug logging for additional detail.\n")
        # The tool would create the id.
        return Ended(error.exit_code, 0 if command in _NEW and error.name == "NOT_FOUND" else _FAILED)
    except Refused as error:
        host.err(f"{error}\n")
        return Ended(error.exit_code, _FAILED)
    return Ended(0, 0)


def _parsed(arguments: Sequence[str], dialect: str) -> tuple[str, Arguments]:
    """The command and all options. Raises UsageError."""
    commands = [name for name in _COMMANDS if not (name in _NEW and dialect == "3.9")]
    at = next((at for at, word in enumerate(arguments) if word in commands and _is_command(arguments, at)), None)
    if at is None:
        raise UsageError(f"kafka-transactions: error: choose a command of {', '.join(commands)}")
    command = arguments[at]
    options, needed = _COMMANDS[command]
    if dialect == "3.9":
        options = tuple(option for option in options if option.name != "transactional-id-pattern")
    common = [Option(name, "value") for name in _COMMON]
    names = [option.name for option in (*common, *options)]
    try:
        found = parse([*common, *options], _in_full(names, [*arguments[:at], *arguments[at + 1 :]]))
        for option in options:
            found.value(option.name)
    except BadOption as error:
        raise UsageError(f"kafka-transactions {command}: error: {error.message}") from error
    missing = [name for name in needed if not found.has(name)]
    if missing:
        raise UsageError(f"kafka-transactions {command}: error: argument --{missing[0]} is required")
    return command, found


def _in_full(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """The words with the whole names of options: this tool takes their beginnings, too. Raises UsageError."""
    full = []
    if "--" in words[:-1]:
        raise UsageError(f"kafka-transactions: error: unrecognized arguments: {words[-1]}")
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        begun = [one for one in names if one.startswith(name)] if word.startswith("--") and name else []
        if len(begun) > 1 and name not in begun:
            raise UsageError(f"kafka-transactions: error: ambiguous option: --{name} could match {', '.join(begun)}")
        full.append(f"--{begun[0]}{equals}{value}" if begun and name not in begun else word)
    return full


def _is_command(arguments: Sequence[str], at: int) -> bool:
    return at == 0 or arguments[at - 1].lstrip("-") not in _COMMON


def _about(command: str, found: Arguments) -> str:
    if command == "list":
        return "Failed to list transactions"
    if command == "describe":
        return f"Failed to describe transaction state of transactional-id `{found.value('transactional-id')}`"
    if command == "find-hanging":
        return "Failed to describe producers"
    if command == "abort":
        return f"Failed to abort transaction in partition {found.value('topic')}-{found.value('partition')}"
    if command == "forceTerminateTransaction":
        return f"Failed to force terminate transactionalId `{found.value('transactionalId')}`"
    broker = found.value("broker-id")
    where = "leader" if broker is None else f"broker {broker}"
    place = f"{found.value('topic')}-{found.value('partition')}"
    return f"Failed to describe producers for partition {place} on {where}"


# --- list ---


def _list(session: Session, found: Arguments) -> None:
    cluster = session.admin.cluster
    duration = found.number("duration-filter")
    pattern = found.value("transactional-id-pattern") if found.has("transactional-id-pattern") else None
    request = ListTransactionsRequest(
        state_filters=[],
        producer_id_filters=[],
        duration_filter=-1 if duration is None else duration,
        transactional_id_pattern=pattern,
    )
    rows = []
    for node, answer in session.run(_listings(cluster, request), "listTransactions"):
        for row in answer.transaction_states:
            rows.append((row.transactional_id, node.node_id, row.producer_id, row.transaction_state))
    show(session, _LIST, rows)


def _listings(cluster: Cluster, request: ListTransactionsRequest) -> Steps[list[tuple[Node, ListTransactionsResponse]]]:
    nodes = yield from cluster.all_nodes()
    lowest = 2 if request.transactional_id_pattern is not None else 1 if request.duration_filter >= 0 else 0
    answers = yield from cluster.ask_each(
        [Ask(node.endpoint, request, ListTransactionsResponse, lowest) for node in nodes]
    )
    found = []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KgctlError):
            raise answer
        if answer.error_code:
            raise BrokerError(answer.error_code, f"broker {node.node_id}")
        found.append((node, answer))
    return found


# --- describe ---


def _describe(session: Session, found: Arguments) -> None:
    name = found.value("transactional-id") or ""
    result = session.run(
        session.admin.cluster.at_coordinators([name], _ask_about, kind=TRANSACTION), "describeTransactions"
    )[name]
    if isinstance(result, KgctlError):
        raise java_error(result, call="describeTransactions").within()
    node, row = result
    started = row.transaction_start_time_ms
    duration = time.time_ns() // 1_000_000 - started
    partitions = in_hash_order(TopicPartition(topic.topic, n) for topic in row.topics for n in topic.partitions)
    cells = (
        node.node_id,
        name,
        row.producer_id,
        row.producer_epoch,
        row.transaction_state,
        row.transaction_timeout_ms,
        started if started >= 0 else _NOTHING,
        duration if started >= 0 else _NOTHING,
        ",".join(map(str, partitions)),
    )
    show(session, _DESCRIBE, [cells])


def _ask_about(node: Node, names: list[str]) -> list[Batch[str]]:
    ask = Ask(node.endpoint, DescribeTransactionsRequest(transactional_ids=names), DescribeTransactionsResponse)

    def read(answer: DescribeTransactionsResponse) -> dict[str, object]:
        return {
            row.transactional_id: BrokerError(row.error_code, row.transactional_id) if row.error_code else (node, row)
            for row in answer.transaction_states
        }

    return [Batch(ask, names, read)]


# --- describe-producers ---


def _describe_producers(session: Session, found: Arguments) -> None:
    key = TopicPartition(found.value("topic") or "", found.number("partition") or 0)
    row = session.run(_producers(session.admin.cluster, key, found.number("broker-id")), "describeProducers")
    if row.error_code:
        raise of_code(row.error_code, row.error_message).within()
    rows = [
        (
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch if one.coordinator_epoch >= 0 else -1,
            one.last_sequence,
            one.last_timestamp,
            one.current_txn_start_offset if one.current_txn_start_offset >= 0 else _NOTHING,
        )
        for one in row.active_producers
    ]
    show(session, _PRODUCERS, rows)


def _producers(cluster: Cluster, key: TopicPartition, broker: int | None) -> Steps[DescribeProducersResponse.Partition]:
    topic = DescribeProducersRequest.Topic(name=key.topic, partition_indexes=[key.partition])
    request = DescribeProducersRequest(topics=[topic])
    node = (yield from cluster.leaders([key]))[key]
    if broker is not None:
        nodes = yield from cluster.all_nodes()
        node = next((one for one in nodes if one.node_id == broker), KgctlError(f"there is no broker {broker}"))
    if isinstance(node, KgctlError):
        raise node
    answer = yield from cluster.ask(Ask(node.endpoint, request, DescribeProducersResponse))
    return answer.topics[0].partitions[0]


_ACTIONS: dict[str, Callable[[Session, Arguments], None]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": run_abort,
    "find-hanging": run_find_hanging,
    "forceTerminateTransaction": run_force_terminate,
}
