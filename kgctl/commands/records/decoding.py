"""Records that name schemas of a registry: what `kgctl consume` prints of them, and of those that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import typer

from broker.protocol.record_batch import Record
from kgctl.client.schema_registry.decoder import Decoder, Undecodable
from kgctl.client.schema_registry.kinds import Format
from kgctl.commands.records.consume_options import OnUndecodable
from kgctl.commands.shared.settings import settings
from kgctl.model.topic_partition import TopicPartition
from kgctl.render import note

# The record to print; None for one to leave out. Raises Undecodable.
Decode: TypeAlias = Callable[[TopicPartition, Record], Record | None]


def decoding_of(
    ctx: typer.Context, url: str | None, key: Format | None, value: Format | None, policy: OnUndecodable | None
) -> Decode | None:
    """How to decode records; None without a registry. Raises BadParameter, BadContext, MissingExtra."""
    if url is None and key is None and value is None:
        if policy is not None:
            raise typer.BadParameter("needs --schema-registry or --value-format.", param_hint="'--on-undecodable'")
        return None
    from kgctl.client.schema_registry.registry import Registry

    registry = Registry(settings(ctx).registry(url))
    ctx.call_on_close(registry.close)
    decoder = Decoder(registry, key=key or Format.AUTO, value=value or Format.AUTO)

    def decode(partition: TopicPartition, record: Record) -> Record | None:
        try:
            return decoder.decode(partition, record)
        except Undecodable as error:
            if policy in (None, OnUndecodable.FAIL):
                raise Undecodable(f"{error}; --on-undecodable skip leaves it out, raw prints its bytes") from None
            note(f"{error}; {'the record is left out' if policy is OnUndecodable.SKIP else 'its bytes are printed'}")
            return None if policy is OnUndecodable.SKIP else record

    return decode
