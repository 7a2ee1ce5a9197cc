"""The `kgctl` command."""

from __future__ import annotations

import gc
import os
import sys

# Without typing and collections, which take longer to load than all else that a help page needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kgctl.commands.shared.settings import Settings

# Answers about 10,000 groups are a million objects without cycles. With Python's default, the collector takes half of the time.
OBJECTS_PER_COLLECTION = 100_000


def main() -> None:
    try:
        _run()
    except (KeyboardInterrupt, SystemExit) as end:
        # Interrupts also come while modules are loaded.
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        import signal

        from kgctl.signals import ignore

        # Another one while the interpreter ends would end the process by the signal, without this exit code.
        # Python's handlers are gone by then; a blocked signal stays pending.
        ignore(signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        sys.exit(INTERRUPTED)


def _run() -> None:
    begun = None
    if sys.argv[1:3] == ["broker", "start"]:
        # Before anything is loaded that this process alone needs, and with Python's own thresholds of the collector.
        from kgctl.commands.broker.early_start import begin

        begun = begin(sys.argv[3:], _report)
    gc.set_threshold(OBJECTS_PER_COLLECTION, 20, 100)
    program = os.path.basename(sys.argv[0])
    if program.startswith("kafka-"):
        # A link with the name of one of Kafka's tools.
        sys.argv[1:1] = ["compat", program]
    answer = begun or _answer(sys.argv[1:])
    from kgctl.output import BROKEN_PIPE, CannotWrite, discard_output, guard_streams

    guard_streams()
    try:
        try:
            answer()
        finally:
            # Not left to the interpreter's exit, which would report a failure with a traceback.
            sys.stdout.flush()
            # The collections at the interpreter's exit would take a fifth of the time of a short command.
            gc.freeze()
    except BrokenPipeError:
        discard_output()
        sys.exit(BROKEN_PIPE)
    except CannotWrite as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


def _answer(arguments: list[str]) -> Callable[[], object]:
    from kgctl.help import page_of

    page = page_of(arguments)
    if page is not None:
        return lambda: sys.stdout.write(page)
    from kgctl.app import app
    from kgctl.commands.shared.settings import Settings

    return lambda: app(prog_name="kgctl", obj=Settings(owns_process=True))


def _report(error: Exception, chosen: Settings) -> int:
    from kgctl.app import report

    return report(error, chosen)


INTERRUPTED = 130

if __name__ == "__main__":
    main()
