"""The `kgctl` command."""

from __future__ import annotations

import sys


def main() -> None:
    from kgctl.app import app

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            # A name in another alphabet must not stop the table on a terminal that cannot show it.
            reconfigure(errors="backslashreplace")
    app(prog_name="kgctl")


if __name__ == "__main__":
    main()
