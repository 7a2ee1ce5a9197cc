"""Runs the turns of one client: sockets and time for its network, a lock and waits for its faces."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from kgctl.client.engine.reactor import ForeignReactor, Reactor
from kgctl.client.engine.wires import Event, Wires
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import InsideCallback
from kgctl.client.net.lifetime import ForeignLock, WrongProcess
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.commands import Command
from kgctl.client.network.participant import Participant

# Participants that never come to rest are stopped here, and continue in the next turn.
_MOST_ROUNDS = 100


def now_ms() -> int:
    """The clock of turns; it has nothing to do with the time of day."""
    return time.monotonic_ns() // 1_000_000


class Engine:
    """One turn: events of sockets -> network -> participants until nothing changes -> commands -> waiters -> callbacks.

    Hold `lock` for each call into the network or a participant, and call `wake` afterwards.
    """

    def __init__(self, network: NetworkClient, settings: ConnectionSettings, reactor: Reactor) -> None:
        self.lock = threading.RLock()
        self.network = network
        self.participants: list[Participant] = []
        # A defect that ended the turns; waits raise it.
        self.failure: BaseException | None = None
        self._reactor = reactor
        self._events: deque[Event] = deque()
        self._wires = Wires(settings, reactor, self._events)
        self._waiters: list[_Waiter] = []
        self._deferred: deque[Callable[[], object]] = deque()
        self._is_closing = False
        self.is_closed = False
        # Of a client that was dropped: what begins its end, and then the condition to wait for.
        self._abandoned: Callable[[], Callable[[], bool]] | None = None
        self._is_finished: Callable[[], bool] | None = None
        if settings.trace is not None:
            from kgctl.client.engine.request_traces import RequestTraces

            network.observe(RequestTraces(settings.trace))

    @classmethod
    def in_thread(cls, network: NetworkClient, settings: ConnectionSettings, name: str = "kgctl-client") -> Engine:
        """An engine with a daemon thread of its own. `start` it."""
        from kgctl.client.engine.thread_reactor import ThreadReactor

        return cls(network, settings, ThreadReactor(name))

    @classmethod
    def in_loop(cls, network: NetworkClient, settings: ConnectionSettings) -> Engine:
        """An engine in the running asyncio loop. `start` it."""
        from kgctl.client.engine.loop_reactor import LoopReactor

        return cls(network, settings, LoopReactor())

    def start(self) -> None:
        self._reactor.start(self._turn)
        self._reactor.wake()

    def wake(self) -> None:
        """A turn is due: a core has something to do. From any thread; costs little if one is due already."""
        self._reactor.wake()

    def is_inside(self) -> bool:
        """Whether this thread is the one that runs turns: a callback of a user, which must not wait."""
        return self._reactor.is_inside()

    def defer(self, callback: Callable[[], object]) -> None:
        """Run a user's callback after this turn, without the lock, in order. What it raises is logged."""
        self._deferred.append(callback)

    def wait(self, condition: Callable[[], bool], timeout: float | None, *, wakes: bool = True) -> bool:
        """Block until the condition holds after some turn; whether it does within `timeout` seconds.

        The condition is called with the lock, also by the thread of the engine. Call this without the lock. Without `wakes`,
        no turn runs for this wait alone: whatever the condition needs was begun, and followed by `wake`.
        Raises InsideCallback in the thread of the engine.
        """
        with self.lock:
            if condition():
                return True
            self._check_alive()
            if self._reactor.is_inside():
                raise InsideCallback
            # A condition variable would take the lock again, which the engine still holds: a switch of threads more.
            gate = threading.Lock()
            gate.acquire()
            waiter = _Waiter(condition, gate.release)
            self._waiters.append(waiter)
        try:
            if wakes:
                self._reactor.wake()
            gate.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX))
        finally:
            self._forget(waiter)
        return waiter.result(self.failure)

    async def wait_async(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """As `wait`, for code in the loop of the engine. Cancelling it is safe."""
        import asyncio

        with self.lock:
            if condition():
                return True
            self._check_alive()
            loop = asyncio.get_running_loop()
            over = loop.create_future()

            def end() -> None:
                if not over.done():
                    over.set_result(None)

            waiter = _Waiter(condition, end)
            self._waiters.append(waiter)
        timer = None if timeout is None else loop.call_later(timeout, waiter.signal)
        try:
            self._reactor.wake()
            await over
        finally:
            if timer is not None:
                timer.cancel()
            self._forget(waiter)
        return waiter.result(self.failure)

    def close(self, timeout: float | None = None) -> bool:
        """Close all connections and end the turns. Requests without an answer fail. Whether the thread has ended in time."""
        with self.lock:
            if not self.is_closed and not self._is_closing:
                self._is_closing = True
                self.network.close(now_ms())
        if self._reactor.is_inside():
            while not self.is_closed:
                self._turn()
            return True
        self._reactor.wake()
        return self._reactor.join(timeout)

    def _forget(self, waiter: _Waiter) -> None:
        with self.lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    @property
    def is_open(self) -> bool:
        """Neither closed, nor about to be."""
        return not (self.is_closed or self._is_closing)

    def abandon(self, begin_end: Callable[[], Callable[[], bool]] = lambda: lambda: True) -> None:
        """The face was dropped: end the turns once the condition holds that `begin_end` returns.

        For finalizers: takes no lock and does not wait. `begin_end` must not refer to the face.
        """
        self._abandoned = begin_end
        self._reactor.wake()

    @property
    def is_foreign(self) -> bool:
        return isinstance(self._reactor, ForeignReactor)

    def forked(self, error: WrongProcess) -> ForeignLock:
        """This is a copy in a forked process: from now on, whatever needs the lock or a turn raises the error."""
        lock = ForeignLock(error)
        self.lock = lock  # type: ignore[assignment]
        self._reactor, self.is_closed = ForeignReactor(error), True
        return lock

    # --- turns ---

    def _check_alive(self) -> None:
        if self.failure is not None:
            raise RuntimeError("the client has failed") from self.failure
        if self.is_closed:
            raise RuntimeError("the client is closed")

    def _turn(self) -> int | None:
        """One turn; in how many milliseconds the next one is due."""
        over: list[_Waiter] = []
        try:
            with self.lock:
                if self._abandoned is not None:
                    self._is_finished, self._abandoned = self._abandoned(), None
                commands = self._advance()
                if self._waiters:
                    over = self._take_over()
                wake = self._wake_at_ms()
            self._wires.carry_out(commands)
            has_called_back = bool(self._deferred)
            if has_called_back:
                _signal(over)
                self._run_deferred()
            if self._is_closing:
                self._end()
                return None
            if self._is_finished is not None and self._is_finished():
                with self.lock:
                    self._is_closing = True
                    self.network.close(now_ms())
                return 0
        except BaseException as error:  # noqa: BLE001  (a defect ends the client, and waits raise it)
            _log("the client has failed")
            self._fail(error)
            return None
        finally:
            # Last, when this thread is about to wait itself: both would compete for the interpreter.
            _signal(over)
        if self._events or self._wires.has_more or (has_called_back and self._waiters):
            return 0
        return None if wake is None else max(1, wake - now_ms())

    def _advance(self) -> list[Command]:
        network, events, now = self.network, self._events, now_ms()
        if self._wires.has_more:
            self._wires.read_more()
        while events:
            events.popleft()(network, now)
        commands: list[Command] = []
        for _ in range(_MOST_ROUNDS):
            before = network.changes
            for participant in self.participants:
                participant.advance(now)
            commands += network.advance(now)
            if network.changes == before:
                break
        return commands

    def _wake_at_ms(self) -> int | None:
        soonest = self.network.wake_at_ms()
        for participant in self.participants:
            at_ms = participant.wake_at_ms()
            if at_ms is not None and (soonest is None or at_ms < soonest):
                soonest = at_ms
        return soonest

    def _take_over(self) -> list[_Waiter]:
        """Those whose wait is over."""
        over = [waiter for waiter in self._waiters if waiter.check()]
        for waiter in over:
            self._waiters.remove(waiter)
        return over

    def _run_deferred(self) -> None:
        while self._deferred:
            callback = self._deferred.popleft()
            try:
                callback()
            except Exception:  # noqa: BLE001  (it is the user's)
                _log("a callback has failed")

    def _fail(self, error: BaseException) -> None:
        with self.lock:
            self.failure = error
            self._end()

    def _end(self) -> None:
        with self.lock:
            self.is_closed = True
            self._wires.close()
            self._reactor.stop()
            for waiter in self._waiters:
                waiter.signal()
            self._waiters.clear()


def _log(text: str) -> None:
    """With the exception that is being handled."""
    import logging

    logging.getLogger("kgctl.client").exception(text)


def _signal(over: list[_Waiter]) -> None:
    while over:
        over.pop().signal()


class _Waiter:
    """Something waits until a condition holds. `signal` ends the wait; it is called at most once after `check`."""

    def __init__(self, condition: Callable[[], bool], signal: Callable[[], object]) -> None:
        self._condition, self.signal = condition, signal
        self._holds = False
        self._error: BaseException | None = None

    def check(self) -> bool:
        """Whether the wait is over."""
        try:
            self._holds = self._condition()
        except Exception as error:  # noqa: BLE001  (the code that waits raises it)
            self._error = error
        return self._holds or self._error is not None

    def result(self, failure: BaseException | None) -> bool:
        if self._error is not None:
            raise self._error
        if failure is not None and not self._holds:
            raise RuntimeError("the client has failed") from failure
        return self._holds
