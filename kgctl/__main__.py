"""The `kgctl` command."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from kgctl.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    from kgctl.output import NOBODY_READS, CannotWrite, forget_output, guard_streams

    guard_streams()
    try:
        try:
            app(prog_name="kgctl")
        finally:
            # Not left to the interpreter's end, which would tell a failure in its own words.
            sys.stdout.flush()
    except BrokenPipeError:
        forget_output()
        sys.exit(NOBODY_READS)
    except CannotWrite as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


INTERRUPTED = 130

if __name__ == "__main__":
    main()
