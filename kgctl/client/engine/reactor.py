"""Waits for sockets and times: what an Engine needs of the thread or the event loop that it runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol

from kgctl.client.net.lifetime import WrongProcess


class Reactor(Protocol):
    def start(self, turn: Callable[[], int | None]) -> None:
        """Begin. `turn` is called after `wake` and at its time; it returns in how many milliseconds to call it again."""

    def wake(self) -> None:
        """Call `turn` soon. From any thread."""

    def watch(self, descriptor: int, readable: Callable[[], bool]) -> None:
        """Call back while a descriptor is readable. It returns whether a turn is due: the rest of a frame may be missing."""

    def watch_writable(self, descriptor: int, writable: Callable[[], bool] | None) -> None:
        """The same while a watched descriptor is writable; None: no longer."""

    def unwatch(self, descriptor: int) -> None: ...

    def is_inside(self) -> bool:
        """Whether this thread is the one that runs turns."""

    def stop(self) -> None:
        """No more turns after this one. From inside of a turn."""

    def join(self, timeout: float | None) -> bool:
        """Wait until no turn runs any more; whether that is so in time. From outside of turns."""


class ForeignReactor:
    """In a forked process, where the thread or the loop of the client does not run; sockets are those of the parent."""

    def __init__(self, error: WrongProcess) -> None:
        self._error = error

    def start(self, turn: Callable[[], int | None]) -> NoReturn:
        raise self._error.with_traceback(None)

    def wake(self) -> NoReturn:
        raise self._error.with_traceback(None)

    def watch(self, descriptor: int, readable: Callable[[], bool]) -> NoReturn:
        raise self._error.with_traceback(None)

    def watch_writable(self, descriptor: int, writable: Callable[[], bool] | None) -> None: ...

    def unwatch(self, descriptor: int) -> None: ...

    def is_inside(self) -> bool:
        return False

    def stop(self) -> None: ...

    def join(self, timeout: float | None) -> bool:
        return True
