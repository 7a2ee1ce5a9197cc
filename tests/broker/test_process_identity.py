"""Which process a pid means."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from broker.process_identity import OtherProcessError, ProcessIdentity

IDENTIFY = "import sys; from broker.process_identity import ProcessIdentity as P; sys.stdout.buffer.write(P.own().to_bytes()); sys.stdout.flush(); sys.stdin.read()"


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", IDENTIFY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def identity(program: subprocess.Popen[bytes]) -> ProcessIdentity:
    assert program.stdout is not None
    found = ProcessIdentity.from_bytes(program.stdout.readline())
    assert found is not None
    return found


def test_a_process_is_signalled_by_its_identity(program: subprocess.Popen[bytes], identity: ProcessIdentity):
    assert identity.pid == program.pid
    identity.send_signal(signal.SIGTERM)
    assert program.wait(10) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        identity.send_signal(signal.SIGTERM)


def test_another_process_with_the_same_pid_is_not_signalled(
    program: subprocess.Popen[bytes], identity: ProcessIdentity
):
    assert identity.start_time is not None
    assert identity.pid_namespace is not None
    for other, reason in (
        (identity._replace(start_time=identity.start_time - 1), "started at another time"),
        (identity._replace(pid_namespace=identity.pid_namespace - 1), "another PID namespace"),
        (identity._replace(start_time=None), "cannot be verified"),
        (identity._replace(pid_namespace=None), "cannot be verified"),
        (identity._replace(pid=0), "cannot be verified"),
        (identity._replace(pid=-identity.pid), "cannot be verified"),
    ):
        with pytest.raises(OtherProcessError, match=reason):
            other.send_signal(signal.SIGKILL)
    assert program.poll() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"pid": "7"}', b'{"pid": true}', b"\xff", b"null"])
def test_other_content_is_no_identity(content: bytes):
    assert ProcessIdentity.from_bytes(content) is None


def test_the_lock_of_an_older_version_names_only_the_pid():
    assert ProcessIdentity.from_bytes(b"123\n") == ProcessIdentity(123, None, None)
