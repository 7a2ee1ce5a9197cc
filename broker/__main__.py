"""`python -m broker`: the command line of the daemon."""

from __future__ import annotations

import gc
import signal
import sys
from typing import Any, NoReturn

from broker.standard_streams import fill_closed_descriptors, guard_stderr

EXIT_CODES = """\
exit codes (up to 7 they are those of kgctl; `kgctl broker start` exits with the same):
   0  stopped cleanly
   1  failed unexpectedly; the log file has the details
   2  wrong usage or configuration: an unknown option, a value out of bounds, an unreadable file,
      a certificate or key store that cannot be used, or an address that other machines can reach
      without encryption and authentication (see --insecure-listen)
   6  another broker holds the data directory
  11  the data directory is damaged or misses acknowledged data (see --accept-loss)
  12  the data directory was written by a newer version
  13  no space left on the device
  14  too few file descriptors (ulimit -n)
  15  cannot listen on the address
  16  the data directory is on a network file system
  17  the data directory cannot be used, or holds data of another program
  18  a write or sync failed; the broker stopped rather than acknowledge data that could be lost
  19  the data directory was removed or replaced while the broker ran
A second SIGTERM or SIGINT during a clean stop ends the broker immediately, with 128 plus the signal number."""


def main(arguments: list[str] | None = None) -> int:
    fill_closed_descriptors()
    guard_stderr()
    # Objects of the start-up live on: the garbage collector runs only once the broker serves.
    gc.disable()
    # Until the event loop handles SIGINT, exit on it without a traceback.
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
        # A fixed width: shutil, which finds the width of the terminal, loads three compression libraries.
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=110),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--data-dir", metavar="DIR", help="the data directory (default: $XDG_DATA_HOME/kgctl/broker)")
    add(
        "--listen",
        metavar="HOST:PORT",
        help="address to listen on; port 0 picks a free port (default: 127.0.0.1:9092)",
    )
    add(
        "--ready-file",
        metavar="FILE",
        help="also write the ready file here, once requests are served; it replaces an older ready file, but no other"
        " file; the directory must be yours or root's, and sticky like /tmp if every user may write to it",
    )
    add(
        "--durability",
        choices=("power", "process"),
        default="power",
        help="what acknowledged records survive: a power cut, or only a crash of this process (default: power)",
    )
    add(
        "--config",
        metavar="FILE",
        action="append",
        default=[],
        help="a .properties file with Kafka's broker options; repeatable",
    )
    add(
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set one option; overrides --config; repeatable",
    )
    add(
        "--insecure-listen",
        action="store_true",
        help="allow an address that other machines can reach, without encryption or authentication",
    )
    add(
        "--secure",
        nargs="?",
        const="SASL_SSL",
        choices=("SASL_SSL", "SASL_PLAINTEXT", "SSL"),
        metavar="PROTOCOL",
        help="listen with TLS and SASL (SASL_SSL), or with SASL_PLAINTEXT or SSL; makes, once, an authority, a server"
        " certificate and the user admin in the folder `security` of the data directory, with a client.properties that fits;"
        " only admin may do anything until ACLs allow more; a certificate is renewed 30 days before it expires",
    )
    add(
        "--accept-loss",
        action="store_true",
        help="start even if acknowledged data is missing or damaged: read all segments (which takes time in proportion to"
        " their size), rename damaged files to *.damaged, report what is lost, and serve the rest",
    )
    add(
        "--add-scram",
        metavar="USER",
        action="append",
        default=[],
        help="add a SCRAM user, or set its password: SCRAM-SHA-512=[name=NAME,password-file=FILE]; iterations=N is optional;"
        " repeatable",
    )
    add("--log-file", metavar="FILE", help="where to log (default: broker.log in the data directory)")
    add(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="serve metrics for Prometheus at http://HOST:PORT/metrics, to everybody on this machine: the address must be a"
        " loopback address; port 0 picks a free port",
    )
    # Only for broker.local, hence not in --help.
    # Once ready, log only to the file, and release stderr and the current directory:
    add("--background", action="store_true", help=argparse.SUPPRESS)
    # Stop when the pipe on stdin ends, unless a byte on it confirms the start:
    add("--starter", action="store_true", help=argparse.SUPPRESS)
    # Stop when this process is no longer the parent, or when the pipe on stdin ends:
    add("--parent", type=int, help=argparse.SUPPRESS)
    # With --parent: remove the data directory when the parent is gone.
    add("--temporary", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.temporary and parsed.parent is None:
        parser.error("--temporary needs --parent")
    return vars(parsed)


if __name__ == "__main__":
    sys.exit(main())
