"""A context as a client.properties that Java clients read: librdkafka's names become Java's."""

from __future__ import annotations

import os
from collections.abc import Mapping

from broker.config.properties import format_properties
from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.contexts.connecting import resolved
from kgctl.contexts.java_properties import IMPLIED, JAVA_REGISTRY
from kgctl.contexts.names import REGISTRY, is_connection, is_path
from kgctl.contexts.target import Target
from kgctl.contexts.values import Reference, located

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_JAAS = "sasl.jaas.config"
_RENAMED = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    **JAVA_REGISTRY,
}
_PEM = {"ssl.ca.pem": "ssl.truststore.type", "ssl.certificate.pem": "ssl.keystore.type"}


def java_client(target: Target, *, with_secrets: bool) -> str:
    """The content of the file. Secrets are resolved only if they are written. Raises BadContext."""
    if with_secrets:
        found = {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in resolved(target, wanted=_is_exported).items()
        }
        return format_properties(java_names(found))
    public: dict[str, str] = {}
    left_out = []
    for name, sourced in target.values.items():
        value = sourced.value
        if not _is_exported(name):
            continue
        if isinstance(value, str) and not is_secret(name):
            is_relative = bool(value) and is_path(name) and target.folder is not None
            public[name] = located(value, target.folder) if is_relative and target.folder else value
        else:
            origin = str(value) if isinstance(value, Reference) else "in the context's file"
            left_out.append(f"# {name}: left out, it is a secret ({origin})\n")
    return format_properties(java_names(public)) + "".join(left_out)


def _is_exported(name: str) -> bool:
    return is_connection(name) or name in REGISTRY


def java_names(properties: Mapping[str, str]) -> dict[str, str]:
    """The same properties for a Java client, as far as Java has names for them."""
    found = {_RENAMED.get(name, name): text for name, text in properties.items()}
    if "ssl.ca.location" in properties and not os.path.isdir(properties["ssl.ca.location"]):
        found.setdefault("ssl.truststore.type", "PEM")
    found |= {store: "PEM" for name, store in _PEM.items() if name in properties}
    found |= dict(implied for name, implied in IMPLIED.items() if name in properties)
    user, password = found.pop("sasl.username", None), found.pop("sasl.password", None)
    module = _LOGIN_MODULES.get(found.get("sasl.mechanism", ""))
    if _JAAS not in found and user is not None and module is not None:
        words = [f"{module} required", f"username={_quoted(user)}"]
        # Without the password the line is a template to complete.
        words += [f"password={_quoted(password)}"] if password is not None else []
        found[_JAAS] = " ".join(words) + ";"
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
