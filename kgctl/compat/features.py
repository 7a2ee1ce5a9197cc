"""kafka-features: `describe`, `upgrade`, `downgrade`, `disable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kgctl.client.admin.cluster_rows import METADATA_VERSION, features
from kgctl.client.admin.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from kgctl.client.net.cluster import Ask, Cluster
from kgctl.client.net.steps import Steps
from kgctl.compat.hash_order import in_hash_order
from kgctl.compat.java_errors import JavaError, of_code
from kgctl.compat.options import Arguments, BadOption, Option, UsageError, parse
from kgctl.compat.tool import Ended, Host, Session, ended_by
from kgctl.journal.items import LEVEL, features_changed
from kgctl.journal.results import Outcome
from kgctl.model.features import FeatureChange
from kgctl.model.items import FEATURE

_FAILED = 1
_COMMON = (Option("bootstrap-server", "value"), Option("command-config", "value"))
_METADATA, _FEATURE = Option("metadata", "value"), Option("feature", "value")
_UNSAFE, _DRY_RUN = Option("unsafe"), Option("dry-run")
_COMMANDS: dict[str, tuple[Option, ...]] = {
    "describe": (),
    "upgrade": (_METADATA, _FEATURE, _DRY_RUN),
    "downgrade": (_METADATA, _FEATURE, _UNSAFE, _DRY_RUN),
    "disable": (_FEATURE, _UNSAFE, _DRY_RUN),
}
_NOT_HERE = ("version-mapping", "feature-dependencies", "--release-version", "--bootstrap-controller")
# The names of the levels of metadata.version, from the one of the first key on; then the newest that a dialect knows.
_NAMES = (
    (
        1,
        "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2",
    ),
    (15, "3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1"),
)
_LEVELS = {level: name for first, names in _NAMES for level, name in enumerate(names.split(), first)}
_KNOWN = {"3.9": (1, 21), "4.1": (7, 27)}


class _Refused(Exception):
    """The tool itself refuses the arguments, with a message on stderr."""


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    command, found = _parsed(arguments)
    try:
        servers, config = found.value("bootstrap-server"), found.value("command-config")
        with host.connect(servers, config, None) as admin:
            session = Session(host, admin)
            if command == "describe":
                _describe(session)
                return Ended(0, 0)
            return _update(session, command, found)
    except JavaError as error:
        host.err(f"{error}\n")
        return Ended(error.exit_code, _FAILED)
    except (_Refused, BadOption) as error:
        host.err(f"{error}\n")
        return Ended(_FAILED, _FAILED)


def _parsed(arguments: Sequence[str]) -> tuple[str, Arguments]:
    """The command and all options. Raises UsageError."""
    unknown = next((word for word in arguments if word.partition("=")[0] in _NOT_HERE), None)
    if unknown is not None:
        raise UsageError(f"kafka-features: error: kgctl does not have {unknown}")
    at = next((at for at, word in enumerate(arguments) if word in _COMMANDS), None)
    if at is None:
        raise UsageError(f"kafka-features: error: choose a command of {', '.join(_COMMANDS)}")
    command = arguments[at]
    try:
        found = parse([*_COMMON, *_COMMANDS[command]], [*arguments[:at], *arguments[at + 1 :]])
    except BadOption as error:
        raise UsageError(f"kafka-features {command}: error: {error.message}") from error
    return command, found


# --- describe ---


def _describe(session: Session) -> None:
    answer = session.run(_versions(session.admin.cluster), "describeFeatures")
    levels = {row.name: row.max_version_level for row in answer.finalized_features}
    epoch = "-" if answer.finalized_features_epoch < 0 else answer.finalized_features_epoch
    for row in sorted(answer.supported_features, key=lambda row: row.name):
        low, high, level = (
            _level_text(session.host.dialect, row.name, number)
            for number in (row.min_version, row.max_version, levels.get(row.name, 0))
        )
        session.out(
            f"Feature: {row.name}\tSupportedMinVersion: {low}\tSupportedMaxVersion: {high}\t"
            f"FinalizedVersionLevel: {level}\tEpoch: {epoch}\n"
        )


def _versions(cluster: Cluster) -> Steps[ApiVersionsResponse]:
    node = (yield from cluster.all_nodes())[0]
    request = ApiVersionsRequest(client_software_name="kgctl", client_software_version="0.1")
    return (yield from cluster.ask(Ask(node.endpoint, request, ApiVersionsResponse, 3)))


def _level_text(dialect: str, feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    first, last = _KNOWN[dialect]
    return _LEVELS[level] if first <= level <= last else f"UNKNOWN {level}"


# --- upgrade, downgrade, disable ---


def _update(session: Session, command: str, found: Arguments) -> Ended:
    levels = _levels(session.host, command, found)
    if not levels:
        raise _Refused(f"You must specify at least one feature to {command}")
    kind = UPGRADE if command == "upgrade" else UNSAFE_DOWNGRADE if found.has("unsafe") else SAFE_DOWNGRADE
    if kind == UPGRADE and (low := next((level for level in levels.values() if level < 1), None)) is not None:
        raise _Refused(
            "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided maxVersionLevel:"
            f"{low} is < 1."
        )
    if any(level < 0 for level in levels.values()):
        raise _Refused("Cannot specify a negative version level.")
    if "" in levels:
        raise _Refused("Provided feature can not be empty.")
    is_dry = found.has("dry-run")
    request = UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.Update(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in ((name, levels[name]) for name in in_hash_order(levels))
        ],
        validate_only=is_dry,
    )
    errors = _errors(session, request, levels) if is_dry else _changed(session, request, levels)
    for name in sorted(levels):
        error = errors.get(name)
        if error is not None:
            what = f"disable {name}" if command == "disable" else f"{command} {name} to {levels[name]}"
            session.out(f"{'Can not' if is_dry else 'Could not'} {what}. {error.message}\n")
            continue
        became = "disabled." if command == "disable" else f"{command}d to {levels[name]}."
        session.out(f"{name} {'can be' if is_dry else 'was'} {became}\n")
    if errors:
        session.err(f"{len(errors)} out of {len(levels)} operation(s) failed.\n")
    return ended_by(errors.values(), _FAILED if errors else 0)


def _changed(session: Session, request: UpdateFeaturesRequest, levels: Mapping[str, int]) -> dict[str, JavaError]:
    session.host.may_change(list(levels))

    def changes() -> list[FeatureChange]:
        present = {row.feature: row.level for row in session.admin.run(features(session.admin.cluster))}
        return [FeatureChange(name, present.get(name), level) for name, level in levels.items()]

    def outcomes(errors: dict[str, JavaError]) -> list[Outcome]:
        from kgctl.model.failure import RowError

        rows = {name: RowError(error.name, str(error.message)) for name, error in errors.items()}
        return [
            Outcome((FEATURE, name, LEVEL), rows.get(name), "failed" if name in rows else "done") for name in levels
        ]

    return session.change(
        "cluster set-feature",
        lambda: features_changed(changes()),
        lambda: _errors(session, request, levels),
        outcomes,
        "updateFeatures",
    )


def _errors(session: Session, request: UpdateFeaturesRequest, levels: Mapping[str, int]) -> dict[str, JavaError]:
    """The features that were refused. An error of the request is that of each of them."""
    answer = session.run(_ask(session.admin.cluster, request), "updateFeatures")
    if answer.error_code:
        return dict.fromkeys(levels, of_code(answer.error_code, answer.error_message))
    return {row.feature: of_code(row.error_code, row.error_message) for row in answer.results if row.error_code}


def _ask(cluster: Cluster, request: UpdateFeaturesRequest) -> Steps[UpdateFeaturesResponse]:
    node = yield from cluster.controller()
    return (yield from cluster.ask(Ask(node.endpoint, request, UpdateFeaturesResponse, 1)))


def _levels(host: Host, command: str, found: Arguments) -> dict[str, int]:
    """The level of each feature. Raises _Refused."""
    levels: dict[str, int] = {}
    if command != "disable" and (text := found.value("metadata")) is not None:
        if host.dialect != "3.9":
            host.out(" `metadata` flag is deprecated and may be removed in a future release.\n")
        levels[METADATA_VERSION] = _metadata_level(host.dialect, text)
    for text in found.values("feature"):
        name, level = (text, 0) if command == "disable" else _name_and_level(text)
        if name in levels:
            raise _Refused(f"Feature {name} was specified more than once.")
        levels[name] = level
    return levels


def _metadata_level(dialect: str, text: str) -> int:
    """Of a name such as 4.0-IV3, or of a release, whose newest level it is."""
    first, last = _KNOWN[dialect]
    wanted = ".".join(text.split(".")[:2])
    for level in range(last, first - 1, -1):
        if wanted in (_LEVELS[level], _LEVELS[level].partition("-")[0]):
            return level
    names = [_LEVELS[level] for level in range(max(first, 4), last + 1)]
    about = "Unsupported" if dialect == "3.9" else "Unknown"
    raise _Refused(f"{about} metadata.version {text}. Supported metadata.version are {', '.join(names)}")


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise _Refused(f"Can't parse feature=level string {text}: equals sign not found.")
    digits = level[1:] if level[:1] in ("-", "+") else level
    if not (digits.isascii() and digits.isdigit() and -(2**15) <= int(level) < 2**15):
        raise _Refused(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name, int(level)
