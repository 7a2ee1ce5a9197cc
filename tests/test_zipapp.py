"""kgctl.pyz: its bootstrap with other content, and the whole file on a machine with nothing but Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ROOT
from tools.zipapp.__main__ import PYTHON, archive

SHOW = "import sys\nfrom kgctl import name\ndef main(): print(name, *sys.argv[1:], sys.path[0])\n"


def run(file: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Without site-packages and the variables of this process."""
    return subprocess.run(
        [sys.executable, "-I", str(file), *arguments],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )


def built(path: Path, *pythons: str, text: str = "one") -> Path:
    """A file like kgctl.pyz whose kgctl shows where it is."""
    package = path / "site" / "kgctl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"name = {text!r}\n")
    (package / "__main__.py").write_text(SHOW)
    file = path / "kgctl.pyz"
    file.write_bytes(archive(path / "site", list(pythons) or [PYTHON]))
    return file


def unpacked(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if path.is_dir())


def test_the_first_run_unpacks_into_the_cache_and_later_ones_use_it(tmp_path: Path) -> None:
    file = built(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    first = run(file, "a", "b", HOME=str(home))
    (site,) = unpacked(home / ".cache" / "kgctl" / "pyz")
    assert first.stdout == f"one a b {site}\n"
    assert first.stderr == ""
    os.truncate(file, file.stat().st_size)
    before = site.stat().st_mtime_ns
    assert run(file, HOME=str(home)).stdout == f"one {site}\n"
    assert site.stat().st_mtime_ns == before
    assert oct(site.parent.stat().st_mode & 0o777) == "0o700"


def test_the_file_is_a_program_that_starts_what_is_unpacked(tmp_path: Path) -> None:
    file, cache = built(tmp_path), tmp_path / "cache"
    link = tmp_path / "kafka-topics"
    link.symlink_to(file)
    path = f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin"

    def start(program: Path, **environment: str) -> str:
        done = subprocess.run(
            [program, "a b"], env={"PATH": path, **environment}, capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    file.chmod(0o755)
    shown = [start(file, XDG_CACHE_HOME=str(cache)) for _ in range(2)]
    (site,) = unpacked(cache / "kgctl" / "pyz")
    assert shown == [f"one a b {site}\n"] * 2
    # The second start reads nothing of the file.
    file.write_bytes(file.read_bytes()[:800])
    assert start(link, XDG_CACHE_HOME=str(cache)) == shown[0]
    assert start(link, HOME="/", KGCTL_PYZ_CACHE=str(cache / "kgctl" / "pyz")) == shown[0]


def test_a_removed_cache_is_unpacked_again(tmp_path: Path) -> None:
    file, cache = built(tmp_path), tmp_path / "cache"
    file.chmod(0o755)
    environment = {"PATH": f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin"}
    environment["KGCTL_PYZ_CACHE"] = str(cache)
    for _ in range(2):
        done = subprocess.run([file], env=environment, capture_output=True, text=True)
        assert done.stdout.startswith("one "), done.stderr
        (site,) = unpacked(cache)
        shutil.rmtree(site)


def test_another_build_does_not_meet_what_an_older_one_unpacked(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(built(tmp_path / "1"), KGCTL_PYZ_CACHE=cache).stdout.startswith("one ")
    assert run(built(tmp_path / "2", text="two"), KGCTL_PYZ_CACHE=cache).stdout.startswith("two ")
    assert len(unpacked(tmp_path / "cache")) == 2


def test_without_a_home_it_uses_a_private_temporary_directory(tmp_path: Path) -> None:
    file = built(tmp_path)
    for environment in ({}, {"HOME": ""}, {"HOME": "/proc/nothing"}):
        temporary = tmp_path / f"tmp{len(environment)}{len(environment.get('HOME', ''))}"
        temporary.mkdir()
        result = run(file, TMPDIR=str(temporary), **environment)
        assert result.stdout.startswith(f"one {temporary}/kgctl-pyz-{os.getuid()}/"), result.stderr


def test_a_temporary_directory_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    file = built(tmp_path)
    planted = tmp_path / f"kgctl-pyz-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    result = run(file, TMPDIR=str(tmp_path))
    assert (result.returncode, result.stdout) == (1, "")
    assert "set KGCTL_PYZ_CACHE" in result.stderr
    assert list(planted.iterdir()) == []


def test_starts_at_the_same_time_unpack_one_whole_directory(tmp_path: Path) -> None:
    file = built(tmp_path)
    cache = tmp_path / "cache"
    environment = {"PATH": "/usr/bin:/bin", "KGCTL_PYZ_CACHE": str(cache)}
    command = [sys.executable, "-I", str(file)]
    starts = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({start.communicate()[0] for start in starts}) == 1
    assert [start.returncode for start in starts] == [0] * 4
    assert len(unpacked(cache)) == 1


def test_another_python_is_refused_in_one_line(tmp_path: Path) -> None:
    package = tmp_path / "kgctl.pyz"
    package.write_bytes(built(tmp_path / "x").read_bytes().replace(f'"{PYTHON}"'.encode(), b'"3.99"'))
    result = run(package, KGCTL_PYZ_CACHE=str(tmp_path / "cache"))
    assert result.returncode == 1
    assert result.stderr.startswith("Error: this kgctl.pyz is for CPython 3.99 on ")
    assert result.stderr.count("\n") == 1


# A build downloads the wheels of all requirements, and takes half a minute.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_whole_file_runs_broker_command_line_and_dashboard(tmp_path: Path) -> None:
    file, home = tmp_path / "kgctl.pyz", tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "tools.zipapp", str(file)], cwd=ROOT, check=True)
    shutil.copy(file, tmp_path / "renamed")
    python = os.path.realpath(sys.executable)

    def kgctl(*arguments: str, text: str | None = None) -> str:
        done = subprocess.run(
            [python, "-I", str(tmp_path / "renamed"), *arguments],
            env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
            cwd=home,
            input=text,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert kgctl("--version").startswith("kgctl ")
    for options in ([], ["--secure"]):
        kgctl("broker", "start", "--listen", "127.0.0.1:0", *options)
        kgctl("topics", "create", "t")
        kgctl("produce", "t", text="hello\n")
        assert kgctl("consume", "t", "--from-beginning", "--until-end") == "hello\n"
        assert "Groups" in kgctl("ui", "--once")
        assert "segments of t" in kgctl("store", "verify", str(home / ".local/share/kgctl/broker"))
        kgctl("topics", "delete", "t", "--execute")
        kgctl("broker", "stop")
