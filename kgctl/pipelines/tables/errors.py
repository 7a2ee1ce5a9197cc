"""What can be wrong with a table on disk."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError, Precondition


class Busy(Precondition):
    """Another process writes to the table, reads it, or runs jobs in the folder."""

    name = "BUSY"


class Damaged(KgctlError):
    """A manifest cannot be read, or a committed file does not match its manifest."""

    name = "DAMAGED"


class Newer(Precondition):
    """A newer kgctl wrote the table."""
