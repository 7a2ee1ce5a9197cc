"""kafka-topics: parses, chooses the action, and reports failures as the tool does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import Arguments, BadOption, UsageError
from kgctl.compat.tool import DIALECTS, Ended, Host, Session
from kgctl.compat.topics.changes import run_alter, run_create, run_delete
from kgctl.compat.topics.describe import run_describe, run_list
from kgctl.compat.topics.options import ACTIONS, parsed

SUMMARY = "Create, delete, describe, or change a topic."
_ACTIONS: dict[str, Callable[[Session, Arguments], None]] = {
    "create": run_create,
    "list": run_list,
    "alter": run_alter,
    "describe": run_describe,
    "delete": run_delete,
}
_FAILED = 1


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    if not arguments:
        raise UsageError(SUMMARY)
    if "--help" in arguments:
        raise UsageError(f"This tool helps to {SUMMARY[0].lower()}{SUMMARY[1:]}")
    if "--version" in arguments:
        host.out(f"{DIALECTS[host.dialect]}\n")
        return Ended(0, 0)
    try:
        found = parsed(arguments)
        servers, config = found.value("bootstrap-server"), found.value("command-config")
    except BadOption as error:
        raise UsageError(error.message) from error
    try:
        with host.connect(servers, config, None) as admin:
            _ACTIONS[next(filter(found.has, ACTIONS))](Session(host, admin), found)
    except JavaError as error:
        inner = error.cause or error
        return _failed(host, inner.message, str(inner), error.exit_code)
    except BadOption as error:
        return _failed(host, error.message, error.java, error.exit_code)
    return Ended(0, 0)


def _failed(host: Host, message: str | None, cause: str, code: int) -> Ended:
    host.out(f"Error while executing topic command : {message}\n")
    host.err(f"{cause}\n")
    return Ended(code, _FAILED)
