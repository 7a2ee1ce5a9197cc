"""`python -m tests.durability.nursery`: forks brokers from a process that has loaded them, which makes a start cheap.

It reads one JSON object per line: the arguments of `python -m broker`, a file for stderr, a planted fault or null, and the
number of the file operation at which the broker is killed, or null. It writes one per line: {"started": pid} in the order of the requests, and {"ended": pid, "code": exit code}. A process that
was killed has the negative number of the signal. At the end of its input it kills the brokers that are left.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from importlib import import_module
from typing import Any

# asyncio loads OpenSSL if it can; the broker does not let it.
sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]

PRELOADED = ("asyncio", "broker.__main__", "broker.server.daemon", "broker.server.broker", "broker.storage")


def main() -> None:
    for name in PRELOADED:
        import_module(name)
    children: set[int] = set()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    waiting = b""
    while True:
        ready = [key.fd for key, _ in selector.select()]
        if wake in ready:
            os.read(wake, 4096)
            _reap(children)
        if 0 in ready:
            read = os.read(0, 1 << 16)
            if not read:
                break
            *lines, waiting = (waiting + read).split(b"\n")
            for line in lines:
                _start(json.loads(line), children)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _start(asked: dict[str, Any], children: set[int]) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _broker(asked)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 2
        finally:
            os._exit(code)
    children.add(pid)
    _say({"started": pid})


def _broker(asked: dict[str, Any]) -> int:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    errors = os.open(asked["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, nothing), (1, nothing), (2, errors)):
        os.dup2(source, target)
    os.closerange(3, 256)
    sys.argv[1:] = asked["arguments"]
    if asked["fault"]:
        import_module("tests.durability.faulty_broker").FAULTS[asked["fault"]]()
    if asked["killed_at"] is not None:
        _kill_at(asked["killed_at"])
    from broker.__main__ import main as run

    return run()


def _kill_at(number: int) -> None:
    """End the process as kill -9 does, before the n-th call that changes a file or after the n-th half of a commit."""
    from broker.storage.file_ops import FileOps
    from broker.storage.store.database import Store

    left = number

    def count() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(call: Any) -> Any:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            count()
            return call(*arguments, **named)

        return wrapper

    FileOps.syncs_at_once = 1
    for name in ("open", "pwrite", "sync", "sync_directory", "truncate", "mkdir", "unlink", "rmdir", "rename"):
        setattr(FileOps, name, counted(getattr(FileOps, name)))
    commit = Store.commit

    def commit_and_count(self: Store) -> None:
        count()
        commit(self)
        count()

    Store.commit = commit_and_count  # type: ignore[method-assign]


def _reap(children: set[int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        children.discard(pid)
        _say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def _say(what: dict[str, int]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
