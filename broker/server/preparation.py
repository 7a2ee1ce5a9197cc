"""What a start prepares before it opens the log: the data directory, TLS, and the users that its arguments add."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from broker import data_directory
from broker.server.failures import DIRECTORY, NETWORK, USAGE, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.config import BrokerConfig
    from broker.config.listeners import Endpoint
    from broker.server.authentication.first_users import FirstUsers
    from broker.server.listener_tls import ListenerTls
    from broker.server.local_security import LocalSecurity


def prepare_data_dir(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    kind = data_directory.network_file_system(data_dir)
    if kind is not None:
        raise Refusal(
            NETWORK,
            f"data directory {data_dir} is on a network file system ({kind}), which does not guarantee durable syncs",
        )
    if data_directory.is_foreign(data_dir):
        raise Refusal(
            DIRECTORY, f"{data_dir} is not empty and is not a broker's data directory: give an empty or a new directory"
        )


def load_tls(config: BrokerConfig) -> Mapping[str, ListenerTls]:
    """What the TLS listeners need. Without one, asyncio does not load OpenSSL, which takes 6 ms."""
    if any(address.uses_tls for address in config.listen):
        from broker.server.listener_tls import listener_tls

        return listener_tls(config)
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]
    import asyncio  # noqa: F401

    # Others may need it later.
    if sys.modules["ssl"] is None:
        del sys.modules["ssl"]
    return {}


def first_users(texts: list[str]) -> FirstUsers | None:
    if not texts:
        return None
    from broker.server.authentication.first_users import FirstUsers

    return FirstUsers(texts)


def local_security(protocol: str | None, data_dir: Path) -> LocalSecurity | None:
    """What --secure makes; None without it."""
    if protocol is None:
        return None
    from broker.server.local_security import LocalSecurity

    return LocalSecurity(data_dir, protocol)


def metrics_endpoint(text: str | None) -> Endpoint | None:
    """Where metrics are read: this machine only, because everybody may read them."""
    if text is None:
        return None
    from broker.config.listeners import parse_endpoint

    endpoint = parse_endpoint("--metrics-listen", text)
    if not endpoint.host or not endpoint.is_loopback():
        raise Refusal(
            USAGE, f"--metrics-listen {text}: metrics are served on loopback addresses only, such as 127.0.0.1:9464"
        )
    return endpoint
