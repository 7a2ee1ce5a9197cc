"""Rows to output: the only place that writes answers to stdout. `show` is the door."""

from kgctl.render.show import note, show

__all__ = ["note", "show"]
