"""What a secured cluster adds to the options of a source. Secrets go in a private file, which the options name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kgctl.client.net.errors import KgctlError
from kgctl.contexts.handover import has_security, secrets_in, write_private
from kgctl.contexts.java_export import java_names
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.option_names import COMMAND_CONFIG
from kgctl.pipelines.spark.scratch import scratch_folder

_FILE = "client.properties"


class CannotHandOver(KgctlError):
    """The credentials cannot reach the source that reads."""

    name = "BAD_OPTION"


def check_secured(settings: RunSettings) -> None:
    """Raises CannotHandOver."""
    properties = settings.properties
    if settings.remote is not None and has_security(properties):
        raise CannotHandOver(
            "--remote reads plaintext clusters only: the server has no access to this machine's credentials"
        )
    secrets = secrets_in(properties)
    if settings.source == "kafka" and secrets:
        raise CannotHandOver(f"--source kafka would show {secrets[0]} in Spark's plans: use --source kgctl")


@contextlib.contextmanager
def secured_options(settings: RunSettings) -> Iterator[dict[str, str]]:
    """The options; they are valid until the block ends."""
    properties = settings.properties
    if not has_security(properties):
        yield {}
    elif settings.source == "kafka":
        yield {f"kafka.{name}": text for name, text in java_names(dict(settings.connection_properties)).items()}
    else:
        with scratch_folder() as folder:
            write_private(folder / _FILE, properties)
            yield {COMMAND_CONFIG: str(folder / _FILE)}
