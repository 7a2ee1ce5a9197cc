"""The warning about a client that was dropped without `close`."""

from __future__ import annotations

import warnings


def warn_unclosed(client: object, client_id: str) -> None:
    """For a finalizer."""
    warnings.warn(
        f"unclosed {type(client).__name__} with client.id {client_id!r}; close it, or use it in a with statement",
        ResourceWarning,
        stacklevel=3,
        source=client,
    )
