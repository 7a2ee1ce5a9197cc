"""kafka-consumer-groups: parses, chooses the action, and reports failures as the tool does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.compat.consumer_groups.deletion import run_delete, run_delete_offsets
from kgctl.compat.consumer_groups.describe import run_describe, run_list
from kgctl.compat.consumer_groups.options import SUMMARY, parsed
from kgctl.compat.consumer_groups.release import RELEASES, Release
from kgctl.compat.consumer_groups.reset import run_reset
from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import Arguments, BadOption, UsageError
from kgctl.compat.tool import Ended, Host, Session

_ACTIONS: dict[str, Callable[[Session, Arguments, Release], Ended]] = {
    "list": run_list,
    "describe": run_describe,
    "delete": run_delete,
    "reset-offsets": run_reset,
    "delete-offsets": run_delete_offsets,
}


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    release = RELEASES[host.dialect]
    if not arguments or "--help" in arguments:
        raise UsageError(SUMMARY)
    if "--version" in arguments:
        host.out(f"{release.version}\n")
        return Ended(0, 0)
    found = parsed(arguments, release, host.err)
    if found.has("validate-regex"):
        return _validate_regex(found, host)
    try:
        timeout_s = (found.number("timeout") or release.timeout_ms) / 1000
        with host.connect(found.value("bootstrap-server"), found.value("command-config"), timeout_s) as admin:
            action = next(name for name in _ACTIONS if found.has(name))
            return _ACTIONS[action](Session(host, admin), found, release)
    except (JavaError, BadOption) as error:
        host.out(f"\nError: Executing consumer group command failed due to {error.message}\n")
        host.err(f"{error.java if isinstance(error, BadOption) else error}\n")
        return Ended(error.exit_code, 0)


def _validate_regex(found: Arguments, host: Host) -> Ended:
    from kgctl.compat.re2 import flaw

    regex = found.value("validate-regex") or ""
    reason = flaw(regex)
    host.out(f"The regular expression `{regex}` is {f'invalid: {reason}' if reason else 'valid'}.\n")
    return Ended(1 if reason else 0, 0)
