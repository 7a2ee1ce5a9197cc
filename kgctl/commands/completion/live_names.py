"""Names that only the cluster knows, within a fraction of a second: from the cache, or asked by a child process.

A cluster that needs longer fills the cache for the next time; one that is away is not asked again for some seconds.
Nothing is ever printed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kgctl.commands.completion.candidates import Wanted
from kgctl.commands.completion.name_cache import NameCache
from kgctl.commands.completion.place import Place

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings

# How long the shell waits for names, how long names are used without asking again, and how long a failure counts.
WAIT_S, FRESH_S, FAILED_S = 0.15, 5.0, 5.0
# Names of a cluster that does not answer in time are shown for this long.
STALE_S = 3600.0
# How long the child may work.
_CHILD_S = 10


def live_names(wanted: Wanted, place: Place) -> Sequence[str]:
    """The names, none if the cluster cannot be asked."""
    from kgctl.client.net.errors import KgctlError
    from kgctl.commands.shared.settings import Settings

    chosen = Settings(
        bootstrap=_last(place, "--bootstrap"),
        context=_last(place, "--context"),
        command_config=_last(place, "--command-config"),
        timeout=_CHILD_S / 2,
        is_timeout_given=True,
    )
    try:
        key = _key(chosen, wanted)
    except (KgctlError, OSError):
        return ()
    cache = NameCache()
    known = cache.read(key)
    if known is not None and known.age_s < (FAILED_S if known.names is None else FRESH_S):
        return known.names or ()
    asked = _ask_in_child(lambda: _ask(chosen, wanted), lambda names: cache.write(key, names))
    if asked is not None:
        return asked
    return known.names or () if known is not None and known.age_s < STALE_S else ()


def _last(place: Place, option: str) -> str | None:
    given = place.values(option)
    return given[-1] if given else None


def _key(chosen: Settings, wanted: Wanted) -> str:
    """What the names depend on: the cluster and the user, without secrets."""
    from kgctl.contexts.names import BOOTSTRAP
    from kgctl.contexts.target import choose

    target = choose(chosen.given())
    file = target.java_file
    parts = [
        *wanted,
        target.name,
        target.text(BOOTSTRAP),
        target.text("sasl.username"),
        str(file.resolve()) if file is not None else None,
    ]
    return json.dumps(parts)


def _ask_in_child(ask: Callable[[], Sequence[str]], keep: Callable[[Sequence[str] | None], None]) -> list[str] | None:
    """The names if the child has them in time; None if not. The child continues without us, and keeps them."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work_alone(ask, keep, writer)
    os.close(writer)
    content, deadline = b"", time.monotonic() + WAIT_S
    with open(reader, "rb", buffering=0) as stream:
        while select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            chunk = stream.read(1 << 20)
            if not chunk:
                with suppress(ValueError):
                    return [str(name) for name in json.loads(content)]
                return []
            content += chunk
    return None


def _work_alone(ask: Callable[[], Sequence[str]], keep: Callable[[Sequence[str] | None], None], writer: int) -> None:
    """The child: away from the terminal and the pipes of the shell, with a limited life. Never returns."""
    names: Sequence[str] | None = None
    try:
        signal.alarm(_CHILD_S)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        with suppress(Exception):
            names = ask()
        keep(names)
        with open(writer, "wb") as answer:
            answer.write(json.dumps(list(names or ())).encode())
    finally:
        os._exit(0)


def _ask(chosen: Settings, wanted: Wanted) -> list[str]:
    with chosen.admin() as admin:
        return sorted(name for name in set(_found(admin, wanted)) if name.isprintable())


def _found(admin: Admin, wanted: Wanted) -> list[str]:
    if wanted.kind == "groups":
        return [row.group for row in admin.list_groups().groups]
    if wanted.kind == "topics":
        return [row.topic for row in admin.list_topics()]
    (group,) = admin.describe_groups([wanted.group], offsets=False)
    fields = {"members": "consumer_id", "instances": "group_instance_id", "hosts": "host"}
    return [name for member in group.members if (name := getattr(member, fields[wanted.kind]))]
