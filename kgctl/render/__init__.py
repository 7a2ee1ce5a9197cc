"""Output: `show` prints rows to stdout in the chosen format, `note` prints sentences to stderr."""

from kgctl.render.formats import TABLES
from kgctl.render.show import note, show

__all__ = ["TABLES", "note", "show"]
