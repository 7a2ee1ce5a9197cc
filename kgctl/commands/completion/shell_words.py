"""A command line that is being typed, as a POSIX shell reads it: its words, and the state of the last one."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple

_SPECIAL = frozenset(" \t\n\"'\\$`&;|<>()*?[]{}#~!")


class Typed(NamedTuple):
    """`words` are complete, `incomplete` is the value of the last one, which is empty behind a space.

    `kept` is how many letters of the value the shell keeps in front of what it replaces, `quote` the quote that is open.
    """

    words: list[str]
    incomplete: str
    kept: int = 0
    quote: str = ""


def read_line(line: str, breaks: str = "") -> Typed:
    """The words of the last command on the line. bash replaces only what follows the last of `breaks`."""
    words: list[str] = []
    value, kept, quote, is_open = "", 0, "", False
    letters = iter(line)
    for letter in letters:
        if quote == "'":
            if letter == "'":
                quote, kept = "", len(value)
            else:
                value += letter
        elif quote == '"':
            if letter == '"':
                quote, kept = "", len(value)
            elif letter == "\\":
                following = next(letters, "")
                value += following if following in '$`"\\' else letter + following
            else:
                value += letter
        elif letter in "'\"":
            quote, is_open, kept = letter, True, len(value)
        elif letter == "\\":
            value, is_open = value + next(letters, ""), True
        elif letter in " \t\n":
            if is_open:
                words.append(value)
            value, kept, is_open = "", 0, False
        elif letter in ";|&":
            words, value, kept, is_open = [], "", 0, False
        else:
            value, is_open = value + letter, True
            if letter in breaks:
                kept = len(value)
    return Typed(words, value, kept, quote)


def insertion(value: str, typed: Typed) -> str:
    """What replaces the end of the typed word, so that the shell reads the value."""
    rest = value[typed.kept :]
    if typed.quote == "'":
        return rest.replace("'", "'\\''")
    if typed.quote == '"':
        return "".join("\\" + letter if letter in '"\\$`' else letter for letter in rest)
    return "".join("\\" + letter if letter in _SPECIAL else letter for letter in rest)


def unquoted(text: str) -> str:
    """The value of a word as it is typed, maybe with an open quote."""
    typed = read_line(text)
    return " ".join([*typed.words, typed.incomplete])
