"""Columns that several tables have."""

from __future__ import annotations

from functools import partial

from kgctl.render.columns import Column, Fit, Shown, Tone

STATUS_TONES = {
    "done": Tone.GOOD,
    "rejoined": Tone.GOOD,
    "joined": Tone.GOOD,
    "failed": Tone.BAD,
    "gone": Tone.BAD,
    "skipped": Tone.QUIET,
    "exists": Tone.QUIET,
}

# Names, which people copy, get more of the spare width than ids.
NAME = partial(Column, fit=Fit.SHORTEN, share=2)
ID = partial(Column, fit=Fit.SHORTEN)
SENTENCE = partial(Column, fit=Fit.WRAP)
STATUS = Column("STATUS", "status", 8, tones=STATUS_TONES)
ERROR = Column("ERROR", "error", shown=Shown.IF_ANY, fit=Fit.SHORTEN, tones=Tone.BAD)
