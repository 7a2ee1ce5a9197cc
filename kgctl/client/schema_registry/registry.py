"""Schemas from a registry, through Confluent's client: its cache, retries, TLS and authentication."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from broker.light_named_tuples import NamedTuple
from kgctl.client.schema_registry.errors import BadRegistry, MissingExtra, RegistryFailed, SchemaNotFound
from kgctl.client.schema_registry.settings import RegistrySettings

T = TypeVar("T")
_RETRIES, _RETRY_MS = 2, 200
_NOT_FOUND, _UNAUTHORIZED = 404, (401, 403)


class Reference(NamedTuple):
    """Another schema that a schema names: `name` is what it calls it."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """`type` is AVRO, JSON or PROTOBUF. `id` is known for schemas of a subject."""

    type: str
    text: str
    references: tuple[Reference, ...]
    id: int | None = None


def required(module: str) -> Any:
    """Import a module of the extra. Raises MissingExtra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"records with schemas of a registry need pip install 'kgctl[schema-registry]' ({error})"
        ) from None


class Registry:
    """`serialized`: Protobuf files as base64 of their descriptor, where the registry offers it, instead of as source."""

    def __init__(self, settings: RegistrySettings) -> None:
        library = required("confluent_kafka.schema_registry")
        self._error: type[Exception] = library.SchemaRegistryError
        self._settings, self._url = settings, settings.url
        options = _options(settings)
        try:
            # Its cache does not distinguish formats.
            self._clients = {serialized: library.SchemaRegistryClient(options) for serialized in (False, True)}
        except (OSError, ssl.SSLError, ValueError) as error:
            raise BadRegistry(f"schema registry {self._url}: {error}") from None

    def by_id(self, schema: int | str, *, serialized: bool = False) -> Schema:
        """The schema with an id or a GUID. Raises SchemaNotFound, RegistryFailed."""
        client, kind = self._clients[serialized], "serialized" if serialized else None
        what = f"schema {schema}"
        if isinstance(schema, int):
            return _schema(self._ask(what, lambda: client.get_schema(schema, fmt=kind)))
        return _schema(self._ask(what, lambda: client.get_schema_by_guid(schema, fmt=kind)))

    def version(self, subject: str, version: int, *, serialized: bool = False) -> Schema:
        """A schema that another one refers to, even if it is deleted."""
        client, kind = self._clients[serialized], "serialized" if serialized else None
        what = f"version {version} of subject {subject!r}"
        found = self._ask(what, lambda: client.get_version(subject, version, True, kind))
        return _schema(found.schema, found.schema_id)

    def latest(self, subject: str) -> Schema:
        """The newest schema of a subject."""
        found = self._ask(f"subject {subject!r}", lambda: self._clients[False].get_latest_version(subject))
        return _schema(found.schema, found.schema_id)

    def count_subjects(self) -> int:
        """How many subjects this user sees. Raises RegistryFailed."""
        return len(self._ask("list of subjects", self._clients[False].get_subjects))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _ask(self, what: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except self._error as error:
            code = getattr(error, "http_status_code", None)
            message = getattr(error, "error_message", None) or str(error)
            if code == _NOT_FOUND:
                raise SchemaNotFound(f"schema registry {self._url} has no {what}") from None
            if code in _UNAUTHORIZED:
                raise RegistryFailed(
                    f"schema registry {self._url} refuses access ({code}): {message}; {self._advice()}"
                ) from None
            raise RegistryFailed(f"schema registry {self._url}: {what}: {message} ({code})") from None
        except Exception as error:  # noqa: BLE001  (the library lets errors of its HTTP client through)
            raise RegistryFailed(f"cannot ask schema registry {self._url} for {what}: {error}") from None

    def _advice(self) -> str:
        user_info, token = "schema.registry.basic.auth.user.info", "schema.registry.bearer.auth.token"
        if self._settings.user_info is not None:
            return f"check {user_info}"
        if self._settings.bearer_token is not None:
            return f"check {token}"
        return f"set {user_info} or {token} in the context"


def _options(settings: RegistrySettings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "url": settings.url,
        "timeout": settings.timeout,
        "max.retries": _RETRIES,
        "retries.wait.ms": _RETRY_MS,
        "ssl.ca.location": settings.ca_location,
        "ssl.certificate.location": settings.certificate_location,
        "ssl.key.location": settings.key_location,
    }
    if settings.user_info is not None:
        found["basic.auth.user.info"] = settings.user_info.reveal()
    if settings.bearer_token is not None:
        found |= {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": settings.bearer_token.reveal(),
            # The library sends it as a header that only Confluent Cloud reads.
            "bearer.auth.logical.cluster": settings.logical_cluster or "",
            "bearer.auth.identity.pool.id": settings.identity_pool,
        }
    if settings.key_password is not None:
        found["ssl.key.password"] = settings.key_password.reveal()
    return {name: value for name, value in found.items() if value is not None}


def _schema(found: Any, schema_id: int | None = None) -> Schema:
    references = tuple(Reference(one.name, one.subject, one.version) for one in found.references or ())
    return Schema(found.schema_type or "AVRO", found.schema_str or "", references, schema_id)
