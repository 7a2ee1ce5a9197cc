"""Fixtures of the tests of the daemon."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def small_disk() -> list[str]:
    """A command prefix: followed by `OPTIONS DIRECTORY COMMAND...`, it runs the command with a tmpfs on the directory."""
    script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    prefix = ["unshare", "-Urm", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    if subprocess.run([*prefix, "size=64k", "/mnt", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    return prefix
