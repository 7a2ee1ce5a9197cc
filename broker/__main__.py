"""`python -m broker`: the command line of the daemon."""

from __future__ import annotations

import gc
import signal
import sys
from typing import Any, NoReturn

EXIT_CODES = """\
exit codes (those up to 7 are kgctl's, `kgctl broker start` answers with the same):
   0  stopped cleanly
   1  failed unexpectedly; the log file has the details
   2  wrong usage or configuration: an unknown option, a value out of its bounds, a file that cannot be read,
      an address that is not a loopback one without --insecure-listen
   6  another broker holds the data directory
  11  the data directory is damaged, or older than what was acknowledged (see --accept-loss)
  12  the data directory was written by a newer version
  13  no space left on the device
  14  too few file descriptors (ulimit -n)
  15  the address cannot be listened on
  16  the data directory is on a network file system
  17  the data directory cannot be used, or holds something else
  18  a write or a sync failed while serving: stopped, to acknowledge nothing that could be lost
A second SIGTERM or SIGINT during a clean stop ends the broker at once, with 128 plus the signal's number."""


def main(arguments: list[str] | None = None) -> int:
    # What a start makes stays: looking for garbage in it comes once the broker serves.
    gc.disable()
    # Until the event loop stops cleanly on SIGINT, die of it without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parsed = _parse(sys.argv[1:] if arguments is None else arguments)

    from broker.server.daemon import Settings, run

    return run(Settings(**parsed))


def _parse(arguments: list[str]) -> dict[str, Any]:
    import argparse
    from functools import partial

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            self.exit(2, f"Error: {message}\n")

    parser = Parser(
        prog="python -m broker",
        description="Run a local, single-node, Kafka-compatible broker in the foreground.",
        epilog=EXIT_CODES,
        # Asking for the terminal's width at each argument would load three compression libraries.
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=110),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--data-dir", metavar="DIR", help="where everything is kept (default: $XDG_DATA_HOME/kgctl/broker)")
    add(
        "--listen", metavar="HOST:PORT", help="where to listen; port 0 lets the system choose (default: 127.0.0.1:9092)"
    )
    add("--ready-file", metavar="FILE", help="also write the ready file here; it appears when requests are served")
    add(
        "--durability",
        choices=("power", "process"),
        default="power",
        help="what acknowledged records survive: a power cut, or the end of this program only (default: power)",
    )
    add("--config", metavar="FILE", action="append", default=[], help="a .properties file of Kafka's broker options")
    add("--override", metavar="KEY=VALUE", action="append", default=[], help="one option; wins over --config")
    add("--insecure-listen", action="store_true", help="allow an address that other machines reach, without encryption")
    add(
        "--accept-loss",
        action="store_true",
        help="start although acknowledged data are missing or damaged: reads all segments, which takes as long as the"
        " store is large, sets damaged files aside as *.damaged, names what is lost and serves the rest",
    )
    add("--log-file", metavar="FILE", help="where to log (default: broker.log in the data directory)")
    # For broker.local alone, hence not in --help. Once ready, log to the file only and let go of stderr and the directory:
    add("--background", action="store_true", help=argparse.SUPPRESS)
    # Stop when this process is no longer the parent, or at the end of the pipe on stdin:
    add("--parent", type=int, help=argparse.SUPPRESS)
    # With --parent, remove the data directory once the parent is gone:
    add("--temporary", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.temporary and parsed.parent is None:
        parser.error("--temporary needs --parent")
    return vars(parsed)


if __name__ == "__main__":
    sys.exit(main())
