"""The broker as a program: data directory, lock, logs, ready file, signals, and one line with an exit code for each failure."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker import data_directory
from broker.config import BrokerConfig, Endpoint, load_config
from broker.data_directory import Ready
from broker.server.failures import (
    ADDRESS,
    DESCRIPTORS,
    INSECURE,
    LIMITS,
    NETWORK,
    STORAGE,
    UNEXPECTED,
    FailStop,
    Refusal,
    explain,
)
from broker.server.log_file import leave_stderr, start_logging

if TYPE_CHECKING:
    import asyncio

    from broker.log import Log

PARENT_CHECK_SECONDS = 1.0
LEAST_DESCRIPTORS = 64

logger = logging.getLogger("broker.daemon")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The command line, as `python -m broker --help` explains it."""

    data_dir: str | None = None
    listen: str | None = None
    ready_file: str | None = None
    durability: str = "power"
    config: list[str]
    override: list[str]
    insecure_listen: bool = False
    accept_loss: bool = False
    log_file: str | None = None
    background: bool = False
    parent: int | None = None
    temporary: bool = False


def run(settings: Settings) -> int:
    """Run until a signal, the parent's end or a failure; the exit code."""
    os.umask(0o077)
    ready_files: list[Path] = []
    try:
        return _run(settings, ready_files)
    except Exception as error:  # noqa: BLE001  the root of the program: whatever happened is told in one line
        return _report(error)
    finally:
        for path in ready_files:
            data_directory.remove_ready(path)


def _run(settings: Settings, ready_files: list[Path]) -> int:
    config = load_config(
        map(Path, settings.config), settings.override, listen=settings.listen, durability=settings.durability
    )
    if not settings.insecure_listen and not config.listen.is_loopback():
        raise Refusal(
            INSECURE,
            f"{config.listen} can be reached from other machines, unencrypted and by anyone; "
            "--insecure-listen allows it",
        )
    data_dir = _prepare_data_dir(settings.data_dir)
    lock = data_directory.hold(data_dir)
    ready_files.append(data_dir / data_directory.READY_NAME)
    if settings.ready_file is not None:
        ready_files.append(Path(os.path.abspath(settings.ready_file)))
    for path in ready_files:
        data_directory.remove_ready(path)
    log_file = Path(os.path.abspath(settings.log_file)) if settings.log_file else data_dir / data_directory.LOG_NAME
    start_logging(log_file, to_stderr=logging.WARNING if settings.background else logging.INFO)
    for warning in config.warnings:
        logger.warning("%s", warning)
    _raise_descriptor_limit()

    log = _open_log(config, data_dir, settings)
    program = _Program(settings, config, data_dir, log_file, log, ready_files)
    try:
        code = program.run()
    finally:
        os.close(lock)
    if settings.temporary and program.parent_is_gone:
        import shutil

        shutil.rmtree(data_dir, ignore_errors=True)
    return code


def _prepare_data_dir(given: str | None) -> Path:
    data_dir = Path(os.path.abspath(given)) if given else data_directory.default_data_dir()
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    kind = data_directory.network_file_system(data_dir)
    if kind is not None:
        raise Refusal(
            NETWORK, f"data directory {data_dir} is on a network file system ({kind}), whose syncs prove nothing"
        )
    return data_dir


def _raise_descriptor_limit() -> None:
    """Connections and segments are open files: take what the system allows without asking, refuse to start on a handful."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS calls its hard limit unlimited and still refuses more than OPEN_MAX.
    wanted = 10240 if sys.platform == "darwin" and hard == resource.RLIM_INFINITY else hard
    if soft != wanted and soft != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            logger.info("the limit of %s open files stays", soft)
    if soft != resource.RLIM_INFINITY and soft < LEAST_DESCRIPTORS:
        raise Refusal(
            DESCRIPTORS, f"too few file descriptors: ulimit -n is {soft}, at least {LEAST_DESCRIPTORS} are needed"
        )


def _open_log(config: BrokerConfig, data_dir: Path, settings: Settings) -> Log:
    from broker.log import Log

    return Log.open(
        data_dir, config.log_settings(), wall_ms=time.time_ns() // 1_000_000, accept_loss=settings.accept_loss
    )


class _Program:
    """One run of the broker in its event loop, from start to stop."""

    def __init__(
        self,
        settings: Settings,
        config: BrokerConfig,
        data_dir: Path,
        log_file: Path,
        log: Log,
        ready_files: list[Path],
    ) -> None:
        self._settings, self._config, self._log, self._ready_files = settings, config, log, ready_files
        self._data_dir, self._log_file = data_dir, log_file
        self._stop: asyncio.Future[str]
        self.parent_is_gone = False

    def run(self) -> int:
        # asyncio loads OpenSSL where it can (6 ms), but goes without; the broker speaks plain text.
        sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]
        import asyncio

        clean = False
        try:
            asyncio.run(self._serve())
            clean = True
        except Refusal:
            clean = True
            raise
        finally:
            for path in self._ready_files:
                data_directory.remove_ready(path)
            self._close_log(clean)
        logger.info("stopped")
        return 0

    def _close_log(self, clean: bool) -> None:
        try:
            self._log.close(clean=clean)
        except Exception:
            # After a failure its cause is what matters; the next start recovers.
            if clean:
                raise
            logger.exception("the log could not be closed")

    async def _serve(self) -> None:
        import asyncio

        from broker.server.broker import Broker

        loop = asyncio.get_running_loop()
        self._stop = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)
        broker = Broker(self._config, self._log)
        try:
            bound = await broker.start()
        except OSError as error:
            if error.errno in LIMITS:
                raise
            raise Refusal(ADDRESS, f"cannot listen on {self._config.listen}: {error.strerror or error}") from error
        if self._settings.parent is not None:
            self._watch_parent(loop)
        gc.freeze()
        gc.enable()
        self._tell_ready(_reachable(*bound))
        ends: set[asyncio.Future[Any]] = {self._stop, broker.failed}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for path in self._ready_files:
            data_directory.remove_ready(path)
        if not self._stop.done():
            raise FailStop from _cause(broker.failed)
        logger.info("stopping: %s", self._stop.result())
        await broker.stop()

    def _tell_ready(self, address: Endpoint) -> None:
        ready = Ready(
            address=str(address),
            pid=os.getpid(),
            data_dir=str(self._data_dir),
            log_file=str(self._log_file),
            durability=self._config.durability,
            started_ms=time.time_ns() // 1_000_000,
            unimplemented_options=list(self._config.unimplemented),
        )
        for path in self._ready_files:
            data_directory.write_ready(path, ready)
        logger.info("serving at %s, pid %s, data in %s", ready.address, ready.pid, ready.data_dir)
        if self._settings.background:
            self._go_to_background()

    def _go_to_background(self) -> None:
        # Whoever waits on the other end of stderr takes its end as the sign that the broker is ready.
        handler = leave_stderr()
        if handler is not None:
            handler.take_stderr()
        os.chdir("/")

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.done():
            os._exit(128 + number)
        self._stop.set_result(number.name)

    def _watch_parent(self, loop: asyncio.AbstractEventLoop) -> None:
        """The end of the pipe tells at once, but a forked sibling may hold it open; so the parent's pid is asked too."""

        def gone() -> None:
            self.parent_is_gone = True
            loop.remove_reader(0)
            if not self._stop.done():
                self._stop.set_result("the parent is gone")

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


def _reachable(host: str, port: int) -> Endpoint:
    """Where a program on this machine finds a broker that is bound to `host`."""
    return Endpoint({"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def _cause(failed: asyncio.Future[BaseException]) -> BaseException:
    return failed.exception() or failed.result()


def _report(error: Exception) -> int:
    """Tell the user in one line, the log file in full."""
    code, line = explain(error)
    handler = leave_stderr()
    if handler is not None:
        logger.error("%s", line, exc_info=error if code in (UNEXPECTED, STORAGE) else None)
        if code == UNEXPECTED:
            line += f" (details in {handler.baseFilename})"
    sys.stderr.write(f"broker: {line}\n")
    sys.stderr.flush()
    return code
