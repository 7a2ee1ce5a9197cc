"""Certificates that the tests of this folder share."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from tests.harness.certificates import Authority, Issued

ServerContext = Callable[[Issued], ssl.SSLContext]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def server_context(authority: Authority) -> ServerContext:
    """Makes the context of a server with a certificate; it accepts clients of the same authority."""

    def make(issued: Issued) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.certificate, issued.key)
        context.load_verify_locations(authority.ca_file)
        return context

    return make
