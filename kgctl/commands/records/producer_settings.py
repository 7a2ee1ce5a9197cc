"""The options of `kgctl produce` about delivery and transactions, checked, as settings of the producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from kgctl.commands.records.produce_options import Acks, Compression
from kgctl.commands.shared.arguments import only_one

if TYPE_CHECKING:
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.client.producer.core.states import TransactionSettings
    from kgctl.client.producer.shared_face import ProducerSettings


def transaction_settings(
    transactional_id: str | None,
    records: int | None,
    seconds: float | None,
    timeout: float | None,
    acks: Acks,
    idempotence: bool,
) -> TransactionSettings | None:
    from kgctl.client.producer.core.states import TransactionSettings

    only_one({"--transaction-records": records, "--transaction-seconds": seconds})
    if transactional_id is None:
        given = {"--transaction-records": records, "--transaction-seconds": seconds, "--transaction-timeout": timeout}
        for option, value in given.items():
            if value is not None:
                raise typer.BadParameter("needs --transactional-id.", param_hint=f"'{option}'")
        return None
    for option, is_right in {"--acks": acks is Acks.ALL, "--no-idempotence": idempotence}.items():
        if not is_right:
            raise typer.BadParameter("transactions need acks=all and idempotence.", param_hint=f"'{option}'")
    settings = TransactionSettings(transactional_id)
    if timeout is not None:
        settings = TransactionSettings(transactional_id, round(timeout * 1000))
    if seconds is not None and seconds * 1000 >= settings.timeout_ms:
        limit = f"{settings.timeout_ms / 1000:g} s of --transaction-timeout"
        raise typer.BadParameter(f"must be below the {limit}.", param_hint="'--transaction-seconds'")
    return settings


def producer_settings(
    compression: Compression,
    acks: Acks,
    idempotence: bool,
    batch_size: int,
    linger_ms: int,
    connection: ConnectionSettings,
    transaction: TransactionSettings | None,
) -> ProducerSettings:
    from broker.protocol.compression import Codec
    from kgctl.client.network.settings import NetworkSettings
    from kgctl.client.producer.core.accumulator import AccumulatorSettings
    from kgctl.client.producer.core.client import CoreSettings
    from kgctl.client.producer.core.sender import ALL, SenderSettings
    from kgctl.client.producer.shared_face import ProducerSettings

    number = ALL if acks is Acks.ALL else int(acks.value)
    is_idempotent = idempotence and number == ALL
    timeout_ms = int(connection.timeout * 1000)
    request_timeout_ms = max(1, timeout_ms // 2)
    accumulator = AccumulatorSettings(batch_size, linger_ms, Codec[compression.name], delivery_timeout_ms=timeout_ms)
    sender = SenderSettings(
        acks=number,
        request_timeout_ms=request_timeout_ms,
        delivery_timeout_ms=timeout_ms,
        keeps_order=not is_idempotent and number != 0,
        record_noun="line",
    )
    core = CoreSettings(is_idempotent=is_idempotent, accumulator=accumulator, sender=sender, transaction=transaction)
    network = NetworkSettings(
        client_id=connection.client_id,
        request_timeout_ms=request_timeout_ms,
        max_in_flight_requests_per_connection=5,
        read_only=connection.read_only,
    )
    return ProducerSettings(core, network, max_block_ms=timeout_ms)
