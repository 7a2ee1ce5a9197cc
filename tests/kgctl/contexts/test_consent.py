"""A project's .kgctl.toml counts only after consent to exactly this file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kgctl.contexts.folders import Home

PROJECT = 'context = "shop"\n[contexts.shop]\nbootstrap.servers = "project:1"\nread-only = true\n'


def bootstrap(home: Home) -> tuple[object, str]:
    done = home.kgctl("context", "show", "-o", "csv")
    (line,) = [line for line in done.stdout.splitlines() if ",bootstrap.servers," in line]
    notes = [note for note in done.stderr.splitlines(keepends=True) if not note.startswith("Context ")]
    return line.split(",")[2], "".join(notes)


def test_an_untrusted_file_is_ignored_and_one_line_says_so(home: Home) -> None:
    Path(".kgctl.toml").write_text(PROJECT)
    value, stderr = bootstrap(home)
    assert value == "127.0.0.1:9092"
    assert stderr == (
        f"Note: {Path('.kgctl.toml').resolve()} is not trusted and is ignored; read it, then run `kgctl context trust`.\n"
    )


def test_consent_holds_for_folders_below_until_the_file_changes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".kgctl.toml").write_text(PROJECT)
    assert home.kgctl("context", "trust").exit_code == 0
    Path("src/deep").mkdir(parents=True)
    monkeypatch.chdir("src/deep")
    assert bootstrap(home) == ("project:1", "")
    Path("../../.kgctl.toml").write_text(PROJECT.replace("project:1", "evil:1"))
    value, stderr = bootstrap(home)
    assert value == "127.0.0.1:9092"
    assert "has changed since you trusted it" in stderr
    assert home.kgctl("context", "trust", "../..").exit_code == 0
    assert bootstrap(home) == ("evil:1", "")
    assert home.kgctl("context", "trust", "--remove").exit_code == 0
    assert bootstrap(home)[0] == "127.0.0.1:9092"


def test_consent_is_bound_to_the_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".kgctl.toml").write_text(PROJECT)
    assert home.kgctl("context", "trust").exit_code == 0
    Path("copy").mkdir()
    Path("copy/.kgctl.toml").write_text(PROJECT)
    monkeypatch.chdir("copy")
    assert bootstrap(home)[0] == "127.0.0.1:9092"


def test_an_untrusted_file_can_neither_fail_nor_block_a_command(home: Home) -> None:
    Path(".kgctl.toml").write_text("not [toml")
    assert bootstrap(home)[0] == "127.0.0.1:9092"
    Path(".kgctl.toml").unlink()
    os.mkfifo(".kgctl.toml")
    value, stderr = bootstrap(home)
    assert value == "127.0.0.1:9092"
    assert "it is ignored" in stderr


def test_an_explicit_cluster_does_not_look_at_the_project(home: Home) -> None:
    Path(".kgctl.toml").write_text(PROJECT)
    assert home.kgctl("context", "show", "--bootstrap", "a:1").stderr == ""


def test_a_trusted_file_with_an_error_is_refused(home: Home) -> None:
    Path(".kgctl.toml").write_text("[contexts.a]\nnope = 1\n")
    done = home.kgctl("context", "trust")
    assert (done.exit_code, "line 2: unknown setting 'nope'" in done.stderr) == (2, True)


def test_trust_names_the_commands_that_the_file_would_run(home: Home) -> None:
    Path(".kgctl.toml").write_text(
        '[contexts.a]\nsasl.password = { command = "curl evil" }\nsasl.oauthbearer.token.command = "curl more"\n'
    )
    said = home.kgctl("context", "trust").stderr
    assert "it runs a command for sasl.password of context 'a': command curl evil" in said
    assert "it runs a command for sasl.oauthbearer.token.command of context 'a': curl more" in said


def test_a_projects_context_replaces_the_users_as_a_whole(home: Home) -> None:
    home.write('[contexts.shop]\nbootstrap.servers = "user:1"\nsasl.username = "alice"\n')
    Path(".kgctl.toml").write_text(PROJECT)
    assert home.kgctl("context", "trust").exit_code == 0
    shown = {row["setting"]: row["value"] for row in home.rows("context", "show", "shop")}
    assert shown["bootstrap.servers"] == "project:1"
    assert "sasl.username" not in shown
    rows = home.rows("context", "list")
    assert [(row["defined_in"], row["shadowed"], row["current"]) for row in rows] == [
        ("project", False, True),
        ("user", True, False),
    ]
