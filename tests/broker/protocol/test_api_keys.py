"""The table of requests, and the error codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode as TheirErrorCode

import broker.protocol.messages
from broker.protocol.api_keys import APIS, NATIVE_FIRST_KEY
from broker.protocol.errors import ErrorCode, is_retriable, message_of


def test_request_and_response_agree_with_the_table() -> None:
    for key, api in APIS.items():
        assert api.key == api.request.API_KEY == api.response.API_KEY == key
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
        assert api.request.VERSIONS == api.response.VERSIONS == api.versions, key
        assert api.request.FLEXIBLE_SINCE == api.response.FLEXIBLE_SINCE, key
        assert api.versions, key
        assert all(api.is_flexible(version) == (version >= api.request.FLEXIBLE_SINCE) for version in api.versions), key


def test_every_message_module_is_in_the_table() -> None:
    folder = Path(broker.protocol.messages.__path__[0])
    modules = {f"broker.protocol.messages.{path.stem}" for path in folder.glob("*.py")}
    assert {APIS[key].request.__module__ for key in APIS} == modules - {"broker.protocol.messages.__init__"}


def test_produce_is_advertised_from_version_0_and_others_as_supported() -> None:
    assert APIS[0].advertised_versions == range(14)
    assert APIS[0].versions == range(3, 14)
    assert all(APIS[key].advertised_versions == APIS[key].versions for key in APIS if key != 0)


def test_our_own_requests_are_outside_the_range_of_kafka() -> None:
    assert [key for key in APIS if key >= NATIVE_FIRST_KEY] == [10000, 10001, 10002, 10003, 10004]


def test_an_unknown_key_is_not_in_the_table() -> None:
    assert 20000 not in APIS
    assert APIS.get(20000) is None
    with pytest.raises(KeyError):
        APIS[20000]


def test_looking_up_one_api_imports_no_other() -> None:
    program = (
        "import sys; from broker.protocol.api_keys import APIS; APIS[12]; "
        "print(sorted(name for name in sys.modules if name.startswith('broker.protocol.messages.')))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['broker.protocol.messages.heartbeat']"


def test_the_error_codes_match_kafka() -> None:
    theirs = {code.value: (code.name.upper(), code.retriable) for code in TheirErrorCode}
    ours = {int(code): (code.name, code.retriable) for code in ErrorCode}
    assert ours == theirs


def test_every_error_has_a_meaning() -> None:
    assert all(message_of(code) for code in ErrorCode)
    assert message_of(12345) == "unknown error code 12345"
    assert (is_retriable(15), is_retriable(25), is_retriable(12345)) == (True, False, False)
