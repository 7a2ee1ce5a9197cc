"""Whether a terminal can show more than ASCII, as far as its environment says."""

from __future__ import annotations

from collections.abc import Mapping

# Consoles whose fonts lack most of the glyphs.
PLAIN_TERMINALS = frozenset({"linux", "vt100", "vt102", "vt220", "ansi", "cons25", "sun"})
UTF_8 = ("UTF-8", "UTF8")


def is_ascii_only(environ: Mapping[str, str]) -> bool:
    """True for the console of Linux and for a locale with another encoding than UTF-8. Without a locale, UTF-8 is likely."""
    if environ.get("TERM") in PLAIN_TERMINALS:
        return True
    # Python sets LC_CTYPE to C.UTF-8 where the locale is C, so LANG says what the user has chosen.
    names = [environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if not names[0] and names[1] in ("C.UTF-8", "C.utf8", "UTF-8") and names[2]:
        names[1] = ""
    chosen = next((name for name in names if name), "")
    return bool(chosen) and not any(encoding in chosen.upper() for encoding in UTF_8)
