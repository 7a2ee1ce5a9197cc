"""How clients end otherwise than by `close`: their process is forked, or they are dropped.

A client belongs to the process that made it: a fork copies its sockets, but neither its threads nor who holds its locks.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from kgctl.client.net.errors import KgctlError

T = TypeVar("T")


class WrongProcess(KgctlError):
    """A forked process uses a client of its parent."""

    name = "WRONG_PROCESS"
    changed_nothing = True


class ForeignLock:
    """In a forked process in the place of a client's lock, which a thread may hold that does not exist there."""

    def __init__(self, error: WrongProcess) -> None:
        self._error = error

    def acquire(self, blocking: bool = True, timeout: float = -1) -> NoReturn:
        raise self._error.with_traceback(None)

    def __enter__(self) -> NoReturn:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def release(self) -> None: ...


_clients: weakref.WeakKeyDictionary[Any, Callable[[Any, WrongProcess], object]] = weakref.WeakKeyDictionary()
_pid = os.getpid()


def watch(client: T, forked: Callable[[T, WrongProcess], object]) -> None:
    """Call `forked` in each forked process: it takes no lock, touches no connection, and lets the client raise the error."""
    _clients[client] = forked


def _after_fork() -> None:
    global _pid
    parent, _pid = _pid, os.getpid()
    for client, forked in list(_clients.items()):
        name = type(client).__name__
        forked(client, WrongProcess(f"this {name} belongs to process {parent}; create one after the fork"))
    _clients.clear()


os.register_at_fork(after_in_child=_after_fork)


def warn_unclosed(client: object, client_id: str) -> None:
    """For the finalizer of a client that was not closed."""
    warnings.warn(
        f"unclosed {type(client).__name__} with client.id {client_id!r}; close it, or use it in a with statement",
        ResourceWarning,
        stacklevel=3,
        source=client,
    )
