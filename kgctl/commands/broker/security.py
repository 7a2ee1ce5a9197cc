"""What `kgctl broker` does for a local broker with TLS or SASL: ask whether it answers, and keep a context that fits."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from broker.light_dataclasses import replace
from kgctl.client.net.errors import KgctlError, TlsFailed
from kgctl.commands.broker.state import is_suspended
from kgctl.model.local_broker import UNRESPONSIVE, LocalBrokerRow
from kgctl.render import note

if TYPE_CHECKING:
    from broker.local import Ready
    from kgctl.client.net.security import Security
    from kgctl.contexts.values import Value

CONTEXT = "local-secure"


def probe(row: LocalBrokerRow, timeout_s: float) -> LocalBrokerRow:
    """The row of a running broker, or UNRESPONSIVE with the reason if it does not answer ApiVersions in time."""
    from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from kgctl.client.net.bootstrap import parse
    from kgctl.client.net.opening import Locks, Opening

    assert row.address is not None
    deadline = time.monotonic() + timeout_s
    try:
        with Opening(parse(row.address)[0], Locks(_security(row)), "kgctl", deadline) as opening:
            opening.resolve()
            opening.connect()
            opening.secure()
            # Every client may send it, also before it has authenticated.
            opening.connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse, deadline)
            opening.connection.receive(deadline)
    except TlsFailed:
        # It answers: it demands a client certificate.
        return row
    except KgctlError as error:
        if is_suspended(row.pid):
            reason = f"its process is suspended; resume it with `kill -CONT {row.pid}`"
            return replace(row, state=UNRESPONSIVE, reason=reason)
        return replace(row, state=UNRESPONSIVE, reason=str(error))
    return row


def _security(row: LocalBrokerRow) -> Security:
    from kgctl.client.net.security import PLAINTEXT, Security, Tls

    if not (row.security_protocol or "").endswith("SSL"):
        return PLAINTEXT
    # The ready file names the process, and nothing secret is sent.
    return Security("SSL", tls=Tls(verify_host_name=False, verify_certificate=False))


def keep_context(ready: Ready, is_default: bool) -> None:
    """After a start with --secure: keep the context of the default data directory, and say how to connect."""
    if ready.client_properties is None:
        return
    if not is_default:
        note(f"Connect with: kgctl --command-config {ready.client_properties} ...")
        return
    try:
        _store_context(Path(ready.client_properties))
    except KgctlError as error:
        # The broker serves: a file of contexts that is not valid does not make the start a failure.
        note(f"Warning: the context {CONTEXT} was not kept: {error}.")
        note(f"Connect with: kgctl --command-config {ready.client_properties} ...")
        return
    note(f"kgctl uses this broker while no context is current. Name it: kgctl --context {CONTEXT} ...")


def _store_context(client_properties: Path) -> None:
    from broker.config.properties import parse_properties
    from broker.data_directory import ADMIN, CA_NAME, PASSWORD_NAME
    from kgctl.contexts.context_file import read_file
    from kgctl.contexts.places import user_file
    from kgctl.contexts.store import change, put
    from kgctl.contexts.values import reference

    folder = client_properties.parent
    # Of several listeners, the one that this file is for.
    known = parse_properties(client_properties.read_text())
    properties: dict[str, Value] = {
        "bootstrap.servers": known["bootstrap.servers"],
        "security.protocol": known["security.protocol"],
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": ADMIN,
        "sasl.password": reference("file", str(folder / PASSWORD_NAME), folder),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / CA_NAME),
    }
    file = read_file(user_file(os.environ))
    # What the user has added to the context stays.
    store = change if file is not None and CONTEXT in file.contexts else put
    store(CONTEXT, properties)
