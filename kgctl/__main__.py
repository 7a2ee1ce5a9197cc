"""The `kgctl` command."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from kgctl.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            # A name in another alphabet must not stop the table on a terminal that cannot show it.
            reconfigure(errors="backslashreplace")
    app(prog_name="kgctl")


INTERRUPTED = 130

if __name__ == "__main__":
    main()
