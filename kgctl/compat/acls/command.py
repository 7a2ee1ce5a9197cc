"""kafka-acls: `--list`, `--add` and `--remove`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.client.admin.acls import list_acls
from kgctl.compat.acls.changes import BLANK, listed, run_add, run_remove
from kgctl.compat.acls.entries import filters, principals, shown
from kgctl.compat.acls.options import parsed
from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import Arguments, BadOption, UsageError
from kgctl.compat.tool import DIALECTS, Ended, Host, Session
from kgctl.model.acls import AclRow

_FAILED = 1


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    try:
        found = parsed(arguments, host.dialect)
        if not arguments or found.has("help"):
            raise UsageError("This tool helps to manage acls on kafka.")
        if found.has("version"):
            host.out(f"{DIALECTS[host.dialect]}\n")
            return Ended(0, 0)
        servers, config = found.value("bootstrap-server"), found.value("command-config")
    except BadOption as error:
        raise UsageError(error.message) from error
    action = next(run for name, run in _ACTIONS.items() if found.has(name))
    try:
        with host.connect(servers, config, None) as admin:
            action(Session(host, admin), found)
    except BadOption as error:
        host.out(f"Error while executing ACL command: {error.message}\n{error.java}\n\n")
        return Ended(_FAILED, _FAILED)
    except JavaError as error:
        host.out(f"Error while executing ACL command: {error.message}\n{error}\n\n")
        return Ended(error.exit_code, _FAILED)
    return Ended(0, 0)


def _list(session: Session, found: Arguments) -> None:
    chosen, names = filters(found), principals(found, "principal")
    rows = session.run(list_acls(session.admin.cluster, chosen), "describeAcls")
    if not names:
        _show(session, rows)
    for name in names:
        session.out(f"ACLs for principal `{name}`\n")
        _show(session, [row for row in rows if row.principal == name])


def _show(session: Session, rows: Sequence[AclRow]) -> None:
    by_resource: dict[tuple[str, str, str], list[AclRow]] = {}
    for row in rows:
        by_resource.setdefault((row.resource_type, row.resource, row.pattern_type), []).append(row)
    for (kind, name, pattern), some in by_resource.items():
        resource = f"ResourcePattern(resourceType={kind.upper()}, name={name}, patternType={pattern.upper()})"
        lines = listed(shown(row.principal, row.host, row.operation, row.permission) for row in some)
        blank = BLANK[session.host.dialect]
        session.out(f"Current ACLs for resource `{resource}`:{blank}\n{blank}{lines}{blank}\n\n")


_ACTIONS: dict[str, Callable[[Session, Arguments], None]] = {"list": _list, "add": run_add, "remove": run_remove}
