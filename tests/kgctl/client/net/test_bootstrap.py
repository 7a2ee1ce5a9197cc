"""Addresses as people write them."""

from __future__ import annotations

import pytest

from kgctl.client.net.bootstrap import BadAddress, parse
from kgctl.client.net.steps import Endpoint
from kgctl.exit_codes import exit_code_of


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("localhost:19092", [("localhost", 19092)]),
        ("kafka", [("kafka", 9092)]),
        ("a:1, b:65535 ,", [("a", 1), ("b", 65535)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_hosts_with_ports(text: str, endpoints: list[tuple[str, int]]) -> None:
    assert parse(text) == tuple(Endpoint(*pair) for pair in endpoints)


@pytest.mark.parametrize(
    "text", ["", ",", "host:0", "host:65536", "host:x", ":9092", "::1", "host:", "[]:1", "host:\u0663"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress) as caught:
        parse(text)
    assert exit_code_of(caught.value) == 2
