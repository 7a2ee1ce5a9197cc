"""Reads single properties, with errors that name them and never repeat a secret."""

from __future__ import annotations

from collections.abc import Mapping

from broker.security.secret import Secret
from kgctl.client.net.security import BadSecurity


class Values:
    def __init__(self, properties: Mapping[str, str | Secret]) -> None:
        self._properties = properties

    def text(self, name: str, default: str = "") -> str:
        found = self._properties.get(name, default)
        return (found.reveal() if isinstance(found, Secret) else found).strip()

    def secret(self, name: str) -> Secret | None:
        """A password as it is, with its blanks; None if it is not given."""
        found = self._properties.get(name)
        return found if isinstance(found, Secret) or found is None else Secret(found)

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name, "true" if default else "false").lower()
        if text not in ("true", "false"):
            raise BadSecurity(f"{name}: {text!r} is neither true nor false")
        return text == "true"

    def seconds(self, name: str, default: float | None) -> float | None:
        """A property in milliseconds."""
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()):
            raise BadSecurity(f"{name}: {text!r} is not a number of milliseconds")
        return int(text) / 1000

    def items(self, name: str) -> list[str]:
        return [item.strip() for item in self.text(name).split(",") if item.strip()]
