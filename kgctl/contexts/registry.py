"""The schema registry of a target: its address, user and files. Secrets are resolved here, and no earlier."""

from __future__ import annotations

import os
from collections.abc import Mapping

from broker.security.secret import Secret
from kgctl.client.schema_registry.settings import RegistrySettings
from kgctl.contexts.connecting import DEFAULT_TIMEOUT_S, resolved
from kgctl.contexts.names import (
    REGISTRY,
    REGISTRY_CA,
    REGISTRY_CERTIFICATE,
    REGISTRY_CLUSTER,
    REGISTRY_KEY,
    REGISTRY_KEY_PASSWORD,
    REGISTRY_POOL,
    REGISTRY_TOKEN,
    REGISTRY_URL,
    REGISTRY_USER_INFO,
    BadContext,
)
from kgctl.contexts.target import Target


def registry_of(
    target: Target, url: str | None, *, timeout: float | None = None, environ: Mapping[str, str] = os.environ
) -> RegistrySettings:
    """The registry at `url`, or that of the target. Raises BadContext, BadRegistry.

    The user and the files of a target with an address of its own are for that address only.
    """
    own = target.text(REGISTRY_URL)
    if url is None and own is None:
        raise BadContext("no schema registry: give --schema-registry URL, or set schema.registry.url in the context")
    is_other = url is not None and own is not None and _address(url) != _address(own)
    found = {} if is_other else resolved(target, environ, wanted=lambda name: name in REGISTRY)
    return RegistrySettings(
        url or own or "",
        user_info=_secret(found.get(REGISTRY_USER_INFO)),
        bearer_token=_secret(found.get(REGISTRY_TOKEN)),
        logical_cluster=_text(found.get(REGISTRY_CLUSTER)),
        identity_pool=_text(found.get(REGISTRY_POOL)),
        ca_location=_text(found.get(REGISTRY_CA)),
        certificate_location=_text(found.get(REGISTRY_CERTIFICATE)),
        key_location=_text(found.get(REGISTRY_KEY)),
        key_password=_secret(found.get(REGISTRY_KEY_PASSWORD)),
        timeout=timeout or target.timeout or DEFAULT_TIMEOUT_S,
    )


def _address(url: str) -> str:
    return url.strip().rstrip("/").lower()


def _secret(value: str | Secret | None) -> Secret | None:
    return Secret(value) if isinstance(value, str) else value


def _text(value: str | Secret | None) -> str | None:
    return value.reveal() if isinstance(value, Secret) else value
