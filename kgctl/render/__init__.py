"""Rows to output: the only place that writes answers to stdout. `show` is the door."""

from kgctl.render.show import TABLES, note, show

__all__ = ["TABLES", "note", "show"]
