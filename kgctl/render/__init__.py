"""Rows to output: the only place that writes answers to stdout. `show` is the door."""

from kgctl.render.show import OUTPUTS, note, show

__all__ = ["OUTPUTS", "note", "show"]
