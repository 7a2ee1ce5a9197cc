"""Our broker with what SecuredKafka has: one listener per security protocol, all mechanisms, and an authorizer.

Only `User:alice`, the certificate CN=alice and clients of PLAINTEXT may do anything: who is served has authenticated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness import sasl_conversations as sasl
from tests.harness.certificates import Authority
from tests.harness.running import RunningBroker
from tests.harness.secured_kafka import AUTHORIZER, PROTOCOLS

USER, PASSWORD = "alice", sasl.USERS["alice"]
OPTIONS = {
    "listeners": ",".join(f"{protocol}://127.0.0.1:0" for protocol in PROTOCOLS),
    "ssl.client.auth": "requested",
    "group.initial.rebalance.delay.ms": "0",
    "connection.failed.authentication.delay.ms": "0",
    "authorizer.class.name": AUTHORIZER,
    "super.users": f"User:{USER};User:CN={USER},O=kgctl tests;User:ANONYMOUS",
}


@contextmanager
def secured_broker(data_dir: Path, authority: Authority, **options: str) -> Iterator[RunningBroker]:
    every = OPTIONS | sasl.options_of("sasl_plaintext") | sasl.options_of("sasl_ssl") | options
    with RunningBroker(data_dir, authority=authority, **every) as running:
        with running.client("PLAINTEXT") as admin:
            sasl.add_scram_users(admin)
        yield running


def address(broker: RunningBroker, protocol: str) -> str:
    return "{}:{}".format(*broker.addresses[protocol])
