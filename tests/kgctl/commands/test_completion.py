"""Completion of commands, options, values and live names, and the scripts in real shells."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from kgctl.app import app
from kgctl.commands.completion.candidates import Wanted, candidates
from kgctl.commands.completion.live_names import FAILED_S
from kgctl.commands.completion.name_cache import NameCache
from kgctl.commands.completion.place import Place
from kgctl.commands.completion.shell_words import insertion, read_line
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of
from tests.harness.running import until
from tests.harness.terminal import terminal
from tests.kgctl.contexts.folders import Home

BREAKS = " \t\n\"'><=;|&(:"
BIN = Path(sys.executable).parent

# --- words of a line ---

VALUES = st.text("ab:= '\"\\$`!;é", min_size=1, max_size=8)


@given(VALUES, st.integers(0, 8), st.sampled_from(["", "'", '"']))
def test_a_completed_word_is_read_as_the_value(value: str, cut: int, quote: str) -> None:
    begun = value[:cut]
    typed = {
        "": "".join("\\" + letter if letter in BREAKS + "\\$`!" else letter for letter in begun),
        "'": "'" + begun,
        '"': '"' + "".join("\\" + letter if letter in '"\\$`' else letter for letter in begun),
    }[quote]
    if quote == "'" and "'" in value:
        return
    read = read_line(f"kgctl groups describe {typed}")
    assert (read.words, read.incomplete, read.quote) == (["kgctl", "groups", "describe"], begun, quote)
    whole = typed[: len(quote)] + insertion(value, read._replace(kept=0)) + quote
    shown = subprocess.run(["bash", "-c", f"printf %s {whole}"], capture_output=True, check=True).stdout
    assert shown.decode() == value


@pytest.mark.parametrize(
    ("line", "value", "expected"),
    [
        ("kgctl x svc:a:o", "svc:a:one", "one"),
        (r"kgctl x svc:my\ g", "svc:my group", r"my\ group"),
        ("kgctl x 'svc:a:o", "svc:a:one", "svc:a:one"),
        ("kgctl --group=my", "--group=my group", r"my\ group"),
        ("echo 'a; b'; kgctl x o", "orders", "orders"),
    ],
)
def test_bash_replaces_only_what_follows_the_last_break(line: str, value: str, expected: str) -> None:
    assert insertion(value, read_line(line, BREAKS)) == expected


# --- candidates, without a cluster ---

LIVE = {"groups": ["orders", "my group"], "topics": ["t1"], "members": ["m-1"], "instances": ["i-1"]}


def completed(line: str) -> list[str]:
    """The candidates for the end of the line; the cluster has the names in LIVE."""
    typed = read_line(line)

    def names(wanted: Wanted, place: Place) -> Sequence[str]:
        assert (wanted.group == "orders") is (wanted.kind not in ("groups", "topics"))
        return LIVE[wanted.kind]

    found = candidates(typer.main.get_command(app), typed.words, typed.incomplete, names)
    return ["FILES"] if found.files else [one.value for one in found.found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gr", ["groups"]),
        ("groups del", ["delete-offsets", "delete"]),
        ("nonsense ", []),
        ("groups nonsense ", []),
        ("groups list --state st", []),
        ("groups list --state St", ["Stable"]),
        ("groups list --state Stable,E", ["Stable,Empty"]),
        ("groups list --state=Stable,E", ["--state=Stable,Empty"]),
        ("groups list --type ", ["Classic", "Consumer", "Share", "Streams"]),
        ("transactions list --state O", ["Ongoing"]),
        ("groups list -o js", ["json", "jsonl"]),
        ("groups list --color a", ["auto", "always"]),
        ("groups lag orders --by m", ["member"]),
        ("groups list --watch --no-h", ["--no-headers"]),
        ("groups list --watch 5 --no-h", ["--no-headers"]),
        ("groups list --columns gr", ["group"]),
        ("groups reset-offsets g --to-e", ["--to-earliest"]),
        ("groups reset-offsets g --to-earliest --to-ea", []),
        ("groups reset-offsets g --topic ", ["t1"]),
        ("groups describe ", ["orders", "my group"]),
        ("groups describe --group o", ["orders"]),
        ("groups describe orders ", ["my group"]),
        ("groups describe -- orders m", ["my group"]),
        ("groups wait orders ", []),
        ("groups remove-members orders --member ", ["m-1"]),
        ("groups remove-members --instance ", []),
        ("groups remove-members orders --instance i", ["i-1"]),
        ("--bootstrap h:1 topics describe t", ["t1"]),
        ("configs set ", ["topic", "broker", "broker-logger", "group", "client-metrics"]),
        ("configs set topic ", ["t1"]),
        ("configs describe groups o", ["orders"]),
        ("configs unset broker d", ["default"]),
        ("consume t", ["t1"]),
        ("schema group-c", ["group-conditions"]),
        ("completion f", ["fish"]),
        ("broker start --config ", ["FILES"]),
        ("broker start --durability pr", ["process"]),
        ("--show-completion ", ["bash", "zsh", "fish", "powershell", "pwsh"]),
        ("compat kafka-gr", []),
    ],
)
def test_each_place_of_a_command_line_has_its_candidates(line: str, expected: list[str]) -> None:
    assert completed(line) == expected


def test_contexts_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert Kgctl()("context", "add", "prod-eu", "--bootstrap", "h:1").exit_code == 0
    assert completed("--context pr") == ["prod-eu"]
    assert completed("groups list --context=pr") == ["--context=prod-eu"]
    assert completed("context use p") == ["prod-eu"]


# --- live names ---


def asked(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What a script for zsh gets from a process."""
    done = subprocess.run(
        [BIN / "kgctl", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment, "_KGCTL_COMPLETE": "zsh"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture
def environment(our_cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    return {"KGCTL_BOOTSTRAP": our_cluster.bootstrap_servers, "XDG_CACHE_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}


def eventually_asked(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """As people do: on a busy machine, press the key again."""
    for _ in range(50):
        found = asked(words, environment)
        if len(found) > 1:
            return found
    return found


def test_names_of_groups_topics_and_members_come_from_the_cluster(
    our_cluster: Cluster, environment: dict[str, str], tmp_path: Path
) -> None:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("compl-topic"), fresh("compl group")
    assert kgctl("topics", "create", topic).exit_code == 0
    with member_of(kgctl, group, {topic: [0]}) as member:
        assert eventually_asked(["groups", "describe", group[:12]], environment) == ["names", group]
        assert eventually_asked(["topics", "describe", topic[:12]], environment) == ["names", topic]
        words = ["groups", "remove-members", group, "--member", ""]
        assert eventually_asked(words, environment) == ["names", member]
    # From the cache, and only for its owner.
    folder = tmp_path / "kgctl" / "completion"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_cluster_that_is_away_or_silent_completes_nothing_silently(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (1, silent.getsockname()[1]):
            environment = {"KGCTL_BOOTSTRAP": f"127.0.0.1:{port}", "XDG_CACHE_HOME": str(tmp_path)}
            assert asked(["groups", "describe", ""], environment) == ["names"]


def test_a_cache_that_cannot_be_written_or_is_no_cache_does_no_harm(
    our_cluster: Cluster, environment: dict[str, str], tmp_path: Path
) -> None:
    topic = fresh("uncached")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", topic).exit_code == 0
    file = tmp_path / "file"
    file.touch()
    assert eventually_asked(["topics", "describe", topic], {**environment, "XDG_CACHE_HOME": str(file)})[1:] == [topic]
    assert eventually_asked(["topics", "describe", topic], environment)[1:] == [topic]
    for path in (tmp_path / "kgctl" / "completion").iterdir():
        path.write_text("{[")
    assert eventually_asked(["topics", "describe", topic], environment)[1:] == [topic]


def test_names_and_failures_are_used_again_for_some_seconds(
    our_cluster: Cluster, environment: dict[str, str], tmp_path: Path
) -> None:
    topic = fresh("cached")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", topic).exit_code == 0
    words = ["topics", "describe", topic]
    assert eventually_asked(words, environment) == ["names", topic]
    (file,) = (tmp_path / "kgctl" / "completion").iterdir()
    # A busy machine may need longer than these seconds.
    for kept, found in (([f"{topic}-kept"], [f"{topic}-kept"]), (None, [])):
        for _ in range(20):
            file.write_text(json.dumps({"at": time.time(), "names": kept}))
            if (again := asked(words, environment)) == ["names", *found]:
                break
        assert again == ["names", *found]


def test_a_cluster_that_is_away_is_not_asked_again_for_some_seconds(tmp_path: Path) -> None:
    environment = {"KGCTL_BOOTSTRAP": "127.0.0.1:1", "XDG_CACHE_HOME": str(tmp_path)}
    words, folder = ["topics", "describe", ""], tmp_path / "kgctl" / "completion"
    assert asked(words, environment) == ["names"]
    (file,) = until(lambda: list(folder.glob("*.json")) if folder.exists() else [])
    for _ in range(3):
        began = time.time()
        kept = json.dumps({"names": None, "at": began})
        file.write_text(kept)
        assert asked(words, environment) == ["names"]
        # Who asks notes the failure in the file.
        # A busy machine may need longer than these seconds.
        assert file.read_text() == kept or time.time() - began > FAILED_S


@pytest.mark.parametrize(("age_s", "is_known"), [(86_000, True), (86_401, False), (-60, False)])
def test_names_of_yesterday_and_of_tomorrow_are_not_known(tmp_path: Path, age_s: int, is_known: bool) -> None:
    cache = NameCache({"XDG_CACHE_HOME": str(tmp_path)})
    cache.write("prod", ["orders"])
    (file,) = (tmp_path / "kgctl" / "completion").iterdir()
    file.write_text(json.dumps({"at": time.time() - age_s, "names": ["orders"]}))
    assert (cache.read("prod") is not None) == is_known


def test_names_for_one_user_are_not_offered_to_another(our_cluster: Cluster, tmp_path: Path) -> None:
    topic = fresh("of-a-user")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", topic).exit_code == 0
    home = Home(tmp_path)
    environment = {**home.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for user, files in (("ann", 1), ("bob", 2)):
        home.write(
            f'[contexts.prod]\nbootstrap.servers = "{our_cluster.bootstrap_servers}"\nsasl.username = "{user}"\n'
        )
        words = ["--context", "prod", "topics", "describe", topic]
        assert eventually_asked(words, environment) == ["names", topic]
        assert len(list((tmp_path / "kgctl" / "completion").iterdir())) == files


# --- real shells ---

SETUPS = {
    "bash": ("bash --norc --noprofile -i", 'eval "$(kgctl completion bash)"; complete -F _kgctl show', "PS1='> '"),
    "zsh": ("zsh -f -i", "source <(kgctl completion zsh); compdef _kgctl show", "PROMPT='> '"),
    "fish": ("fish --no-config -i", "kgctl completion fish | source; complete -c show -f -a '(__kgctl_complete)'", ""),
}
SHOW = {"fish": "function show; printf '<%s>' $argv; echo; end"}
NAMES = ["my group", "svc:a:one", "it's", 'quo"te', "do$lar"]


@pytest.fixture(scope="module")
def named_groups(our_cluster: Cluster) -> Iterator[str]:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic = fresh("names")
    assert kgctl("topics", "create", topic).exit_code == 0
    for name in NAMES:
        kgctl.commit(name, topic, p0=0)
    yield our_cluster.bootstrap_servers
    assert kgctl("groups", "delete", *NAMES, "--execute").exit_code == 0


@pytest.mark.parametrize("shell", SETUPS)
def test_a_real_shell_completes_names_with_spaces_colons_and_quotes(
    named_groups: str, shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command, setup, prompt = SETUPS[shell]
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "KGCTL_BOOTSTRAP": named_groups,
        "XDG_CACHE_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    # Fill the cache, so that a busy machine does not decide.
    assert len(eventually_asked(["groups", "describe", ""], environment)) > len(NAMES)
    begun = {"my": "my group", "svc:a": "svc:a:one", '"my g': "my group", "it": "it's", "quo": 'quo"te', "do": "do$lar"}
    with terminal(command.split(), 100, 50, environment) as shown:
        shown.press(prompt, "Enter")
        shown.press(SHOW.get(shell, "show() { printf '<%s>' \"$@\"; echo; }"), "Enter")
        shown.press(f"{setup}; echo re''ady", "Enter")
        shown.wait_for(lambda screen: "\nready" in screen, "the script to be loaded")
        for text, name in begun.items():
            before = shown.screen().count(f"<groups><describe><{name}>")
            shown.press("C-u")
            shown.press("-l", f"show groups describe {text}")
            shown.press("Tab")
            shown.press("Enter")
            shown.wait_for(
                lambda screen, name=name, before=before: screen.count(f"<groups><describe><{name}>") > before,
                f"{name} after {text}",
            )
