"""The tables about the clients of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.model.clients import ClientMetric, ClientRow
from kgctl.render.columns import Column, Layout, Shown
from kgctl.render.parts import ERROR, ID, NAME
from kgctl.watch.figures import span


def _address(row: Any) -> str:
    return f"[{row.host}]:{row.port}" if ":" in row.host else f"{row.host}:{row.port}"


def _software(row: Any) -> str | None:
    return " ".join(filter(None, (row.software_name, row.software_version))) or None


def _duration(field: str) -> Callable[[Any], str]:
    return lambda row: span(getattr(row, field) / 1000)


def _listed(field: str) -> Callable[[Any], str | None]:
    return lambda row: ",".join(getattr(row, field)) or None


def _labels(row: Any) -> str | None:
    return ",".join(f"{name}={value}" for name, value in row.labels.items()) or None


def _value(row: Any) -> str | None:
    return None if row.value is None else f"{row.value:.6g}" if isinstance(row.value, float) else str(row.value)


def _kind(row: Any) -> str | None:
    return f"{row.kind} DELTA" if row.is_delta else row.kind


CLIENT_LAYOUTS: dict[str, Layout] = {
    "clients": Layout(
        ClientRow,
        (
            ID("ADDRESS", _address, 15),
            NAME("CLIENT-ID", "client_id", 12),
            ID("SOFTWARE", _software, 12),
            NAME("PRINCIPAL", "principal", 9),
            Column("LISTENER", "listener", 9, rank=2),
            Column("AGE", _duration("age_ms"), 6, rank=4),
            Column("IDLE", _duration("idle_ms"), 6, rank=3),
            Column("REQUESTS", "requests", 8),
            Column("BYTES-IN", "bytes_in", 8, rank=5),
            Column("BYTES-OUT", "bytes_out", 9, rank=6),
            Column("LAST", "last_request", 12, rank=7),
            NAME("GROUPS", _listed("groups"), 6, Shown.IF_ANY),
            NAME("TRANSACTIONAL-IDS", _listed("transactional_ids"), 17, Shown.IF_ANY),
            ID("CLIENT-INSTANCE-ID", "client_instance_id", 22, Shown.WIDE_IF_ANY),
        ),
    ),
    "client-metrics": Layout(
        ClientMetric,
        (
            NAME("CLIENT-ID", "client_id", 12),
            ID("CLIENT-INSTANCE-ID", "client_instance_id", 22, Shown.WIDE),
            NAME("METRIC", "metric", 40),
            ID("LABELS", _labels, 10, Shown.IF_ANY),
            Column("TYPE", _kind, 10, rank=1),
            Column("VALUE", _value, 10),
            Column("COUNT", "observations", 6, Shown.IF_ANY),
            Column("UNIT", "unit", 4, Shown.IF_ANY, rank=2),
            ERROR,
        ),
    ),
}
