"""What can go wrong between records, schemas and a registry."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError


class MissingExtra(KgctlError):
    """The libraries of an extra are not installed."""

    is_final = True
    name = "BAD_OPTION"


class BadRegistry(KgctlError):
    """The settings of the registry cannot be used."""

    is_final = True
    name = "BAD_OPTION"


class RegistryFailed(KgctlError):
    """The registry cannot be reached, or refuses the user."""

    name = "UNREACHABLE"


class SchemaNotFound(KgctlError):
    """The registry has no schema with this id, or no such subject."""

    name = "NOT_FOUND"


class BadSchema(KgctlError):
    """A schema that cannot be read, or is of another kind than the one asked for."""

    name = "BAD_SCHEMA"


class Mismatch(Exception):
    """Bytes or JSON that do not fit the schema. `str` says where and why, without the record."""
