"""The open sockets of one engine, by the link of the network that each serves."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kgctl.client.engine.reactor import Reactor
from kgctl.client.engine.stream import Stream
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.diagnosis import explain
from kgctl.client.net.errors import KgctlError, NotKafka, TlsFailed, Unreachable
from kgctl.client.net.opening import Locks, Opening
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.commands import Close, Command, Connect, Write

# What has happened to a link; the next turn passes it to the network.
Event: TypeAlias = "Callable[[NetworkClient, int], None]"


class Wires:
    """Connections are opened in threads of their own: to resolve, connect, secure and authenticate may block.

    Sockets are read and written by the thread of the engine alone.
    """

    def __init__(self, settings: ConnectionSettings, reactor: Reactor, events: deque[Event]) -> None:
        self._settings, self._reactor, self._events = settings, reactor, events
        self._locks = Locks(settings.security)
        self._wires: dict[int, _Wire | None] = {}
        # Opened by threads, and not yet seen by a turn.
        self._new: dict[int, Stream] = {}
        self._is_closed = False
        self._guard = threading.Lock()
        # Connections that have received more than one turn may read.
        self._unread: set[_Wire] = set()

    @property
    def has_more(self) -> bool:
        return bool(self._unread)

    def carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if type(command) is Write:
                wire = self._wires.get(command.link)
                if wire is not None:
                    wire.write(command)
            elif type(command) is Connect:
                self._connect(command)
            else:
                assert isinstance(command, Close)
                self._close(command.link)

    def read_more(self) -> None:
        for wire in list(self._unread):
            wire.read()

    def close(self) -> None:
        for link in list(self._wires):
            self._close(link)
        with self._guard:
            self._is_closed = True
            for stream in self._new.values():
                stream.close()

    def _connect(self, command: Connect) -> None:
        self._wires[command.link] = None
        name = f"kgctl-connect-{command.endpoint}"
        threading.Thread(target=self._open, args=(command,), name=name, daemon=True).start()

    def _open(self, command: Connect) -> None:
        deadline = time.monotonic() + command.timeout_ms / 1000
        settings = self._settings
        opening = Opening(command.endpoint, self._locks, settings.client_id, deadline, settings.trace, settings.buffers)
        try:
            stream = Stream(opening.run().detach())
        except KgctlError as error:
            self._report_loss(command.link, error)
            return
        except Exception as error:  # noqa: BLE001  (a defect must not leave the link hanging)
            self._report_loss(command.link, Unreachable(f"{command.endpoint}: {error!r}"))
            return
        wire = _Wire(command.link, stream, opening, self._events, self._reactor, self._unread)
        session_ms = None if opening.lifetime is None else int(opening.lifetime * 1000)

        def opened(network: NetworkClient, now_ms: int) -> None:
            with self._guard:
                self._new.pop(command.link, None)
            if command.link not in self._wires:  # closed meanwhile
                stream.close()
                return
            self._wires[command.link] = wire
            wire.watch()
            network.connected(command.link, now_ms, session_ms)

        with self._guard:
            if self._is_closed:
                stream.close()
                return
            self._new[command.link] = stream
        self._events.append(opened)
        self._reactor.wake()

    def _report_loss(self, link: int, error: KgctlError) -> None:
        def lost(network: NetworkClient, now_ms: int) -> None:
            self._wires.pop(link, None)
            network.lost(link, error, now_ms)

        self._events.append(lost)
        self._reactor.wake()

    def _close(self, link: int) -> None:
        wire = self._wires.pop(link, None)
        if wire is not None:
            wire.close()


class _Wire:
    def __init__(
        self,
        link: int,
        stream: Stream,
        opening: Opening,
        events: deque[Event],
        reactor: Reactor,
        unread: set[_Wire],
    ) -> None:
        self.link = link
        self._stream, self._opening = stream, opening
        self._events, self._reactor, self._unread = events, reactor, unread
        self._unanswered = 0
        self._frames = 0
        self._is_over = False

    def watch(self) -> None:
        self._reactor.watch(self._stream.descriptor, self.read)

    def read(self) -> bool:
        """Whether a turn has something to do."""
        if self._is_over:
            return False
        try:
            frames = self._stream.read()
        except (OSError, EOFError, NotKafka, TlsFailed) as error:
            self._end(error)
            return True
        if self._stream.has_more:
            self._unread.add(self)
        else:
            self._unread.discard(self)
        if frames:
            self._frames += len(frames)
            self._events.append(self._received(frames))
        return bool(frames) or self._stream.has_more

    def write(self, command: Write) -> None:
        if self._is_over:
            return
        self._unanswered += command.is_unanswered
        was_writing = self._stream.is_writing
        try:
            self._stream.write(command.buffers)
        except OSError as error:
            self._end(error)
            return
        if not self._stream.is_writing:
            self._written()
        elif not was_writing:
            self._reactor.watch_writable(self._stream.descriptor, self._flush)

    def close(self) -> None:
        self._forget()
        self._stream.close()

    def _flush(self) -> bool:
        if self._is_over:
            return False
        try:
            is_empty = self._stream.flush()
        except OSError as error:
            self._end(error)
            return True
        if is_empty:
            self._reactor.watch_writable(self._stream.descriptor, None)
            self._written()
        return is_empty

    def _written(self) -> None:
        count, self._unanswered = self._unanswered, 0
        for _ in range(count):
            self._events.append(lambda network, now_ms: network.written(self.link, now_ms))

    def _received(self, frames: list[bytes]) -> Event:
        def received(network: NetworkClient, now_ms: int) -> None:
            for frame in frames:
                network.received(self.link, frame, now_ms)

        return received

    def _end(self, error: Exception) -> None:
        """The connection has failed. To find out why may need further connections, so a thread does it."""
        self._forget()
        self._stream.close()
        if self._frames > 1:
            self._lost(explain(self._opening.endpoint, error))
        else:
            name = f"kgctl-diagnosis-{self._opening.endpoint}"
            threading.Thread(target=self._diagnose, args=(error,), name=name, daemon=True).start()

    def _diagnose(self, error: Exception) -> None:
        try:
            found = self._opening.troubleshoot(error, False)
        except Exception:  # noqa: BLE001  (what is known already is enough)
            found = None
        self._lost(found or explain(self._opening.endpoint, error))

    def _lost(self, error: KgctlError) -> None:
        self._events.append(lambda network, now_ms: network.lost(self.link, error, now_ms))
        self._reactor.wake()

    def _forget(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._unread.discard(self)
            self._reactor.unwatch(self._stream.descriptor)
