"""The `kgctl` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    program = os.path.basename(sys.argv[0])
    if program.startswith("kafka-"):
        # A link with the name of one of Kafka's tools.
        sys.argv[1:1] = ["compat", program]
    try:
        from kgctl.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    from kgctl.output import BROKEN_PIPE, CannotWrite, discard_output, guard_streams

    guard_streams()
    try:
        try:
            app(prog_name="kgctl")
        finally:
            # Not left to the interpreter's exit, which would report a failure with a traceback.
            sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        sys.exit(BROKEN_PIPE)
    except CannotWrite as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


INTERRUPTED = 130

if __name__ == "__main__":
    main()
