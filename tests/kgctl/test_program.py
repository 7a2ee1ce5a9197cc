"""kgctl as a program: standard streams and signals."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.listeners import ApiVersionsThenSilence, listening

KGCTL = [sys.executable, "-m", "kgctl"]


def test_a_pipe_closed_halfway_leaves_no_traceback(our_cluster: Cluster) -> None:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    assert (
        kgctl("topics", "create", *[fresh("many-" + "x" * 200) for _ in range(30)], "--partitions", 10).exit_code == 0
    )
    command = [*KGCTL, "topics", "describe", "--bootstrap", our_cluster.bootstrap_servers]
    # Without a buffer, Python drops the error of a partial write.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(20) == 141


@pytest.mark.parametrize("arguments", ["topics list", "topics --help", "--help"])
def test_a_pipe_closed_from_the_start_leaves_no_traceback(our_cluster: Cluster, arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*KGCTL, *arguments.split(), "--bootstrap", our_cluster.bootstrap_servers]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    "arguments", ["topics list", "topics list -o json", "consume @ --from-beginning", "topics --help"]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_reported_in_one_line(our_cluster: Cluster, arguments: str, unbuffered: str) -> None:
    done = redirected(our_cluster, arguments, ">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "redirection", "code", "said"),
    [
        ("topics list", ">&-", 1, "Error: cannot write the output: Bad file descriptor\n"),
        ("topics --help", ">&-", 1, "Error: cannot write the output: Bad file descriptor\n"),
        ("produce @ --acks 1", "<&-", 1, "Error: cannot read the records: standard input is closed\n"),
        ("topics list", "<&-", 0, ""),
        ("topics list", "2>&-", 0, ""),
        ("groups describe no-such-group", "<&- >&- 2>&-", 1, ""),
        ("groups describe no-such-group", ">/dev/full", 1, "Error: cannot write the output: No space left on device\n"),
    ],
)
def test_a_closed_stream_is_reported_only_where_it_is_needed(
    our_cluster: Cluster, arguments: str, redirection: str, code: int, said: str
) -> None:
    done = redirected(our_cluster, arguments, redirection)
    assert done.returncode == code
    # A producer first reports the acknowledged records.
    assert done.stderr.endswith(said)
    assert "AttributeError" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("topics list", 0),
        ("produce @ --acks 1 </dev/null", 0),
        ("groups describe no-such-group", 5),
        ("groups describe", 2),
        ("topics list --bootstrap 127.0.0.1:1", 7),
    ],
)
def test_the_exit_code_is_true_even_if_stderr_cannot_be_written(
    our_cluster: Cluster, arguments: str, code: int, unbuffered: str
) -> None:
    done = redirected(our_cluster, arguments, "2>/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
def test_two_full_disks_are_an_error_too(our_cluster: Cluster) -> None:
    assert redirected(our_cluster, "topics list", ">/dev/full 2>/dev/full").returncode == 1


def redirected(
    cluster: Cluster, arguments: str, redirection: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run kgctl in a shell; @ stands for a topic with a record."""
    topic = fresh("t")
    assert Kgctl(cluster.bootstrap_servers)("produce", topic, text="a\n").exit_code == 0
    command = f"exec {shlex.join(KGCTL)} {arguments.replace('@', topic)} {redirection}"
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={**os.environ, "KGCTL_BOOTSTRAP": cluster.bootstrap_servers, **environment},
    )


def test_a_failure_with_a_closed_pipe_leaves_no_traceback(our_cluster: Cluster) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*KGCTL, "groups", "describe", "no-such-group", "--bootstrap", our_cluster.bootstrap_servers]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr in (b"", b"Error: Consumer group 'no-such-group' does not exist.\n")


def test_an_interrupt_is_exit_code_130_without_a_traceback() -> None:
    silence = ApiVersionsThenSilence()
    with listening(silence) as endpoint:
        command = [*KGCTL, "topics", "list", "--bootstrap", str(endpoint)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert silence.reached.wait(20)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (130, b"", b"")


def test_names_that_the_encoding_lacks_are_escaped(our_cluster: Cluster) -> None:
    command = [*KGCTL, "groups", "describe", "\u6771", "--bootstrap", our_cluster.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False)
    assert (done.returncode, done.stderr) == (5, b"Error: Consumer group '\\u6771' does not exist.\n")


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert Kgctl()("--version").stdout == f"kgctl {version('kgctl')}\n"
