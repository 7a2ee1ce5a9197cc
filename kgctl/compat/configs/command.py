"""kafka-configs: parses, chooses what describes or changes an entity, and reports failures as the tool does."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.compat.configs.options import CLIENTS, IPS, USERS, Entity, added, deleted, parsed
from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import Arguments, BadOption, UsageError
from kgctl.compat.tool import DIALECTS, Ended, Host, Session

SUMMARY = "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or group"
_FAILED = 1


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    try:
        found, entity = parsed(arguments, host.dialect)
        if not arguments or found.has("help"):
            raise UsageError(SUMMARY)
        if found.has("version"):
            host.out(f"{DIALECTS[host.dialect]}\n")
            return Ended(0, 0)
        servers, config = found.value("bootstrap-server"), found.value("command-config")
    except BadOption as error:
        raise UsageError(error.message) from error
    try:
        with host.connect(servers, config, None) as admin:
            session = Session(host, admin)
            return _alter(session, found, entity) if found.has("alter") else _describe(session, found, entity)
    except JavaError as error:
        if error.cause is None:
            host.err(f"{error.message}\n")
        else:
            host.err(f"Error while executing config command with args '{' '.join(arguments)}'\n{error}\n")
        return Ended(error.exit_code, _FAILED)


def _describe(session: Session, found: Arguments, entity: Entity) -> Ended:
    if entity.kind not in (USERS, CLIENTS, IPS):
        from kgctl.compat.configs.resources import describe_resources

        return describe_resources(session, entity, is_all=found.has("all"))
    from kgctl.compat.configs.quotas import describe_quotas

    describe_quotas(session, entity)
    if entity.kind != IPS and CLIENTS not in entity.kinds and "" not in entity.names:
        from kgctl.compat.configs.scram import describe_credentials

        describe_credentials(session, entity.names)
    return Ended(0, 0)


def _alter(session: Session, found: Arguments, entity: Entity) -> Ended:
    if len(entity.kinds) != len(entity.names):
        raise UsageError("An entity name must be specified for every entity type")
    values, removed = added(found), deleted(found)
    if entity.kind not in (USERS, CLIENTS, IPS):
        from kgctl.compat.configs.resources import alter_resource

        alter_resource(session, entity, values, removed)
    else:
        from kgctl.compat.configs.quotas import alter_quotas, are_quotas

        if are_quotas(entity, values, removed):
            alter_quotas(session, entity, values, removed)
        else:
            from kgctl.compat.configs.scram import alter_credentials

            alter_credentials(session, entity, values, removed)
    if entity.names[0]:
        session.out(f"Completed updating config for {entity.kind[:-1]} {entity.names[0]}.\n")
    else:
        session.out(f"Completed updating default config for {entity.kind} in the cluster.\n")
    return Ended(0, 0)
