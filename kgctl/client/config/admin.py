"""Options of the admin client."""

from __future__ import annotations

from kgctl.client.config.option import Option
from kgctl.client.config.security import SecurityOptions

OPTIONS = (
    Option("default.api.timeout.ms", "int", 60_000, "How long a method may take, with all its requests.", least=0),
    Option("connections.max.idle.ms", "long", 300_000, "Close a connection without requests after this time."),
)
IGNORED = (
    Option("bootstrap.controllers", "class", None, "Requests go to brokers.", is_ignored=True),
    Option("retries", "class", None, "Requests are repeated until default.api.timeout.ms.", is_ignored=True),
)


class AdminOptions(SecurityOptions, total=False):
    """The options of `Admin` and `AsyncAdmin` as keyword arguments."""

    default_api_timeout_ms: int
