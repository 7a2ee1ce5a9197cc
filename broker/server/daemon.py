"""The broker as a program: data directory, lock, logs, ready file, signals; each failure is one line and an exit code."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker import data_directory
from broker.config.config import BrokerConfig, load_config
from broker.config.exposure import why_insecure
from broker.data_directory import KILLED, Run
from broker.directory_lock import Hold, hold, remove_stale_ready
from broker.light_dataclasses import dataclass, field, replace
from broker.ready_file import Ready, ReadyFile, ReadyListener
from broker.security import acls
from broker.server.descriptor_limit import raise_descriptor_limit
from broker.server.failures import (
    ADDRESS,
    LIMITS,
    REPLACED,
    STORAGE,
    UNEXPECTED,
    USAGE,
    FailStop,
    Refusal,
    explain,
)
from broker.server.log_file import leave_stderr, start_logging
from broker.server.preparation import first_users, load_tls, local_security, metrics_endpoint, prepare_data_dir

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from broker.config.listeners import Endpoint
    from broker.server.broker import Broker
    from broker.server.listener_tls import ListenerTls
    from broker.server.local_security import LocalSecurity
    from broker.storage import Log

PARENT_CHECK_SECONDS = 1.0
# Recovered partitions that the log names; it counts the others.
RECOVERED_SHOWN = 10

logger = logging.getLogger("broker.daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The command-line arguments; `python -m broker --help` documents them."""

    data_dir: str | None = None
    listen: str | None = None
    ready_file: str | None = None
    durability: str = "power"
    config: list[str]
    override: list[str]
    insecure_listen: bool = False
    secure: str | None = None
    accept_loss: bool = False
    add_scram: list[str] = field(default_factory=list)
    log_file: str | None = None
    metrics_listen: str | None = None
    background: bool = False
    starter: bool = False
    parent: int | None = None
    temporary: bool = False


def run(settings: Settings) -> int:
    """Run until a signal, the end of the parent or a failure. Returns the exit code."""
    if settings.starter:
        from broker.server.starter import end_with_starter

        end_with_starter()
    os.umask(0o077)
    start = _Start(settings)
    try:
        return start.run()
    except Exception as error:  # noqa: BLE001  the root of the program reports any failure in one line
        code, line = explain(error, start.data_dir)
        lost = start.lost_directory()
        if lost is not None and code != REPLACED:
            # The failure is a consequence.
            code, line = REPLACED, f"stopped: {lost}"
        start.note_end(line)
        return _report(error, code, line)
    finally:
        start.remove_ready_files()


class _Start:
    """What a start acquires and must release: ready files, the lock, the record of this run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        given = settings.data_dir
        self.data_dir = Path(os.path.abspath(given)) if given else data_directory.default_data_dir()
        self._ready_files: list[ReadyFile] = []
        self._hold: Hold | None = None
        self._run: Run | None = None

    def run(self) -> int:
        settings = self._settings
        ready_path = self.data_dir / data_directory.READY_NAME
        given_ready_path = Path(os.path.abspath(settings.ready_file)) if settings.ready_file is not None else None
        # First of all: a program that waits for the file must not find the file of a killed broker.
        for path in (ready_path, given_ready_path):
            if path is not None:
                remove_stale_ready(path)
        security = local_security(settings.secure, self.data_dir)
        config = load_config(
            map(Path, settings.config),
            settings.override,
            listen=settings.listen,
            durability=settings.durability,
            defaults=security.options() if security is not None else None,
        )
        exposure = None if settings.insecure_listen else why_insecure(config)
        if exposure is not None:
            raise Refusal(USAGE, f"{exposure}; pass --insecure-listen to allow it")
        metrics_listen = metrics_endpoint(settings.metrics_listen)
        # The certificate of --secure is made below.
        tls = load_tls(config) if security is None else {}
        added = first_users(settings.add_scram)
        prepare_data_dir(self.data_dir)
        given_ready_file = ReadyFile.in_safe_directory(given_ready_path) if given_ready_path is not None else None
        self._hold = held = hold(self.data_dir)
        ready_file = ReadyFile(ready_path, held.descriptor)
        ready_file.clear()
        self._ready_files = [ready_file, *([given_ready_file] if given_ready_file is not None else [])]
        log_file = self.data_dir / data_directory.LOG_NAME
        if settings.log_file:
            log_file = Path(os.path.abspath(settings.log_file))
        start_logging(log_file, to_stderr=logging.WARNING if settings.background else logging.INFO)
        for warning in config.warnings:
            logger.warning("%s", warning)
        if security is not None:
            security.prepare(config)
            tls = load_tls(config)
        previous = self._note_start()
        raise_descriptor_limit()

        log = _open_log(config, self.data_dir, settings, held)
        _log_recovery(previous, log, settings.accept_loss)
        if added is not None:
            added.add_to(log)
        if security is not None:
            security.add_admin(log)
        elif not config.authorizer_class_name:
            _warn_of_idle_acls(log, self.data_dir)
        program = _Program(settings, config, tls, security, self.data_dir, log_file, log, self._ready_files)
        program.metrics_listen = metrics_listen
        code = program.run()
        self.note_end(program.reason, clean=True)
        if settings.temporary and program.parent_is_gone:
            import shutil

            # Remove the held directory, not one that took its place.
            shutil.rmtree(".", ignore_errors=True, dir_fd=held.descriptor)
            with contextlib.suppress(OSError):
                self.data_dir.rmdir()
        held.close()
        return code

    def remove_ready_files(self) -> None:
        """Remove the ready files that this broker wrote."""
        for file in self._ready_files:
            file.remove()

    def lost_directory(self) -> str | None:
        """Why the data directory is no longer the one that this broker locked; None if it is, or was never locked."""
        return None if self._hold is None else self._hold.lost()

    def _note_start(self) -> Run | None:
        previous = data_directory.last_run(self.data_dir)
        self._run = Run(pid=os.getpid(), started_ms=time.time_ns() // 1_000_000)
        self._write_run(self._run)
        return previous

    def note_end(self, reason: str, *, clean: bool = False) -> None:
        if self._run is not None:
            ended = replace(self._run, ended_ms=time.time_ns() // 1_000_000, clean=clean, reason=reason)
            # The failure may be that of the disk.
            with contextlib.suppress(OSError):
                self._write_run(ended)

    def _write_run(self, run: Run) -> None:
        assert self._hold is not None
        data_directory.write_run(self._hold.descriptor, self.data_dir, run)


def _log_recovery(previous: Run | None, log: Log, accept_loss: bool) -> None:
    if previous is not None and not previous.clean:
        ended = f"failed: {previous.reason}" if previous.reason else f"did not stop cleanly: {KILLED}"
        # After a refused start the losses that are accepted were already logged.
        level = logging.INFO if accept_loss and previous.reason else logging.WARNING
        logger.log(level, "the previous run (pid %s) %s", previous.pid, ended)
    if log.recovered:
        shown = ", ".join(log.recovered[:RECOVERED_SHOWN])
        more = len(log.recovered) - RECOVERED_SHOWN
        logger.info("recovered %s%s", shown, f" and {more} more" if more > 0 else "")


def _warn_of_idle_acls(log: Log, data_dir: Path) -> None:
    """A start that forgets --secure or the authorizer opens the records of this directory to everybody."""
    if (data_dir / data_directory.SECURITY_NAME).is_dir():
        logger.warning("an earlier start was with --secure, this one is not: every client may do everything")
    elif log.security_records.all(acls.RECORD_KIND):
        logger.warning(
            "the ACLs are not in force, because authorizer.class.name is not set: every client may do everything"
        )


def _open_log(config: BrokerConfig, data_dir: Path, settings: Settings, held: Hold) -> Log:
    from broker.storage import Log

    return Log.open(
        data_dir,
        config.log_settings(),
        wall_ms=time.time_ns() // 1_000_000,
        accept_loss=settings.accept_loss,
        held=held,
    )


class _Program:
    """One run of the broker in its event loop, from start to stop."""

    def __init__(
        self,
        settings: Settings,
        config: BrokerConfig,
        tls: Mapping[str, ListenerTls],
        security: LocalSecurity | None,
        data_dir: Path,
        log_file: Path,
        log: Log,
        ready_files: list[ReadyFile],
    ) -> None:
        self._settings, self._config, self._log, self._ready_files = settings, config, log, ready_files
        self._tls, self._security = tls, security
        self._data_dir, self._log_file = data_dir, log_file
        self._stop: asyncio.Future[str]
        self.metrics_listen: Endpoint | None = None
        self.parent_is_gone = False
        self.reason = "stopped"

    def run(self) -> int:
        import asyncio

        clean = False
        try:
            asyncio.run(self._serve())
            clean = True
        except Refusal:
            clean = True
            raise
        finally:
            for file in self._ready_files:
                file.remove()
            self._close_log(clean)
        logger.info("stopped")
        return 0

    def _close_log(self, clean: bool) -> None:
        try:
            self._log.close(clean=clean)
        except Exception:
            # Report the first failure, not this one; the next start recovers.
            if clean:
                raise
            logger.exception("cannot close the log")

    async def _serve(self) -> None:
        import asyncio

        from broker.server.broker import Broker
        from broker.server.listener import CannotListen

        loop = asyncio.get_running_loop()
        self._stop = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)
        broker = Broker(self._config, self._log, self._tls, self.metrics_listen)
        try:
            await broker.start()
        except CannotListen as error:
            cause = error.__cause__
            assert isinstance(cause, OSError)
            if cause.errno in LIMITS:
                raise cause from None
            raise Refusal(ADDRESS, f"cannot listen on {error}: {cause.strerror or cause}") from cause
        if self._settings.parent is not None:
            self._watch_parent(loop)
        if self._settings.starter:
            from broker.server.starter import await_confirmation

            await_confirmation(loop, self._end_for)
        gc.freeze()
        gc.enable()
        self._announce(broker)
        ends: set[asyncio.Future[Any]] = {self._stop, broker.failed}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for file in self._ready_files:
            file.remove()
        if not self._stop.done():
            raise FailStop from broker.failure
        self.reason = f"stopped: {self._stop.result()}"
        logger.info("stopping: %s", self._stop.result())
        await broker.stop()

    def _announce(self, broker: Broker) -> None:
        from broker.server.listener import reachable

        listeners = broker.listeners
        metrics = None if broker.metrics is None else f"http://{broker.metrics.bound}/metrics"
        served = [
            ReadyListener(name=each.name, security_protocol=each.security_protocol, address=str(reachable(each.bound)))
            for each in listeners
        ]
        if self._security is not None:
            self._security.write_client_properties(listeners)
        ready = Ready(
            address=served[0].address,
            pid=os.getpid(),
            data_dir=str(self._data_dir),
            log_file=str(self._log_file),
            durability=self._config.durability,
            started_ms=time.time_ns() // 1_000_000,
            unimplemented_options=list(self._config.unimplemented),
            listeners=served,
            client_properties=None if self._security is None else str(self._security.client_properties),
            metrics=metrics,
        )
        self._log.check_directory()
        for file in self._ready_files:
            file.write(ready)
        places = ", ".join(map(str, served))
        if metrics is not None:
            logger.info("metrics at %s", metrics)
        logger.info("serving at %s, pid %s, data in %s", places, ready.pid, ready.data_dir)
        if self._settings.background:
            self._go_to_background()

    def _go_to_background(self) -> None:
        os.chdir("/")
        # A program that reads our stderr takes its end as the sign that the broker is ready.
        handler = leave_stderr()
        if handler is not None:
            handler.take_stderr()

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.done():
            os._exit(128 + number)
        self._stop.set_result(number.name)

    def _end_for(self, reason: str) -> None:
        if not self._stop.done():
            self._stop.set_result(reason)

    def _watch_parent(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop when the parent ends: stdin closes at once, unless a forked sibling holds it open, so check the pid too."""

        def gone() -> None:
            self.parent_is_gone = True
            loop.remove_reader(0)
            self._end_for("the parent process ended")

        def read() -> None:
            if not os.read(0, 4096):
                gone()

        def check() -> None:
            if os.getppid() != self._settings.parent:
                gone()
            else:
                loop.call_later(PARENT_CHECK_SECONDS, check)

        loop.add_reader(0, read)
        check()


def _report(error: Exception, code: int, line: str) -> int:
    """Report the failure on stderr in one line, and in the log file in full."""
    handler = leave_stderr()
    if handler is not None:
        logger.error("%s", line, exc_info=error if code in (UNEXPECTED, STORAGE) else None)
        if code == UNEXPECTED:
            line += f" (details in {handler.baseFilename})"
    sys.stderr.write(f"Error: {line}\n")
    sys.stderr.flush()
    return code
