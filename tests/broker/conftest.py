"""What the tests of the daemon share."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def small_disk() -> list[str]:
    """Words to put before `OPTIONS DIRECTORY COMMAND...`: they run it with a small file system of its own there."""
    script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    words = ["unshare", "-Urm", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not there")
    if subprocess.run([*words, "size=64k", "/mnt", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    return words
