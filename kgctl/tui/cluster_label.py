"""The cluster that the dashboard shows: what people call it, how a command names it, and what its context forbids."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterLabel:
    """`context` is its name, None without one. `options` are the options with which a command chooses this cluster."""

    address: str
    context: str | None = None
    color: str | None = None
    read_only: bool = False
    must_confirm: bool = False
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.context or self.address

    def command_options(self, *changed: str) -> list[str]:
        """The options of a command that changes what has these names."""
        chosen = list(self.options or ("--bootstrap", self.address))
        if self.must_confirm:
            chosen += [word for name in changed for word in ("--yes", name)]
        return chosen
