"""The syntax of patterns: RE2's, read into a tree. Unicode classes (`\\pL`) are refused."""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from broker.light_dataclasses import dataclass, replace

MAX_REPEAT = 1_000
MAX_DEPTH = 100
LAST = 0x10FFFF

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"

DIGITS: Ranges = ((48, 57),)
UPPER: Ranges = ((65, 90),)
LOWER: Ranges = ((97, 122),)
WORD: Ranges = (*DIGITS, *UPPER, (95, 95), *LOWER)
SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
CLASSES = {"d": DIGITS, "s": SPACE, "w": WORD}
POSIX: dict[str, Ranges] = {
    "alnum": (*DIGITS, *UPPER, *LOWER),
    "alpha": (*UPPER, *LOWER),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGITS,
    "graph": ((33, 126),),
    "lower": LOWER,
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": UPPER,
    "word": WORD,
    "xdigit": (*DIGITS, (65, 70), (97, 102)),
}
CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


class InvalidPattern(ValueError):
    """The pattern is not valid; the message says why."""


class Kind(Enum):
    """Where an anchor holds."""

    BEGIN_TEXT = auto()
    END_TEXT = auto()
    BEGIN_LINE = auto()
    END_LINE = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One character in, or not in, these ranges; `folds` if case does not matter."""

    ranges: Ranges
    negated: bool = False
    folds: bool = False

    def contains(self, character: str) -> bool:
        forms = {character, character.lower(), character.upper()} if self.folds else {character}
        codes = [ord(form) for form in forms if len(form) == 1]
        return any(low <= code <= high for code in codes for low, high in self.ranges) is not self.negated


@dataclass(frozen=True, slots=True)
class Anchor:
    kind: Kind


@dataclass(frozen=True, slots=True)
class Group:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    node: Node
    least: int
    most: int | None


Node: TypeAlias = "AnyOf | Anchor | Group | Alternatives | Repeat"
ANCHORS = {
    "A": Kind.BEGIN_TEXT,
    "z": Kind.END_TEXT,
    "b": Kind.WORD_BOUNDARY,
    "B": Kind.NO_WORD_BOUNDARY,
}


@dataclass(frozen=True, slots=True)
class Flags:
    i: bool = False  # case does not matter
    m: bool = False  # ^ and $ are about lines
    s: bool = False  # . also takes a line feed
    U: bool = False  # which repetitions are greedy; makes no difference to what matches


def is_word(character: str) -> bool:
    return bool(character) and any(low <= ord(character) <= high for low, high in WORD)


def parse(text: str) -> Node:
    """The tree of a pattern. Raises InvalidPattern."""
    reader = _Reader(text)
    node = reader.alternatives(Flags(), 0)
    if reader.at < len(text):
        raise InvalidPattern("unexpected )")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: set[str] = set()

    def alternatives(self, flags: Flags, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise InvalidPattern("groups are nested too deeply")
        branches: list[Node] = []
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.takes("|"):
                branches.append(Group(tuple(parts)))
                parts = []
            elif self.takes("\\Q"):
                literal, _, _ = self.text[self.at :].partition("\\E")
                self.at += len(literal) + 2
                parts += [_one(ord(character), flags) for character in literal]
                parts[-1:] = [self.repeated(part) for part in parts[-1:]]
            elif self.takes("(?") and (changed := self.flags(flags)) is not None:
                flags = changed
                # A repetition after flags is one of what comes before them.
                parts[-1:] = [self.repeated(part) for part in parts[-1:]]
            else:
                parts.append(self.repeated(self.atom(flags, depth)))
        branches.append(Group(tuple(parts)))
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def takes(self, expected: str) -> bool:
        found = self.text.startswith(expected, self.at)
        if found:
            self.at += len(expected)
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise InvalidPattern("the pattern ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def flags(self, flags: Flags) -> Flags | None:
        """The flags of `(?flags)`, after "(?"; None, and back before "(?", for anything else."""
        before = self.at - 2
        end = self.text.find(")", self.at)
        words = self.text[self.at : end] if end >= 0 else ""
        if not words or ":" in words or words[0] in "P<":
            self.at = before
            return None
        self.at = end + 1
        return _with_flags(flags, words)

    def atom(self, flags: Flags, depth: int) -> Node:
        character = self.next()
        match character:
            case "(":
                return self.group(flags, depth)
            case "[":
                return self.char_class(flags)
            case "\\":
                return self.escape(flags)
            case ".":
                return AnyOf((), negated=True) if flags.s else AnyOf(((10, 10),), negated=True)
            case "^":
                return Anchor(Kind.BEGIN_LINE if flags.m else Kind.BEGIN_TEXT)
            case "$":
                return Anchor(Kind.END_LINE if flags.m else Kind.END_TEXT)
            case "*" | "+" | "?" | "{" if self.repeats_nothing():
                raise InvalidPattern(f"{character} repeats nothing")
            case "{" if self.bounds() is not None:
                raise InvalidPattern("a brace that is a character may not be repeated without a backslash")
        return _one(ord(character), flags)

    def repeats_nothing(self) -> bool:
        """Whether the character before this place begins a repetition."""
        self.at -= 1
        if self.bounds() is not None:
            return True
        self.at += 1
        return False

    def group(self, flags: Flags, depth: int) -> Node:
        if self.takes("?"):
            words, colon, _ = self.text[self.at :].partition(":")
            if self.takes("P<") or self.takes("<"):
                name, end, _ = self.text[self.at :].partition(">")
                if not end or not name.replace("_", "a").isalnum() or name in self.names:
                    raise InvalidPattern("the name of a group is not valid")
                self.names.add(name)
                self.at += len(name) + 1
            elif colon:
                flags = _with_flags(flags, words)
                self.at += len(words) + 1
            else:
                raise InvalidPattern("unknown kind of group")
        node = self.alternatives(flags, depth + 1)
        if not self.takes(")"):
            raise InvalidPattern("missing )")
        return Group((node,))

    def repeated(self, node: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return node
        least, most = bounds
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise InvalidPattern("the repetition is not valid")
        self.takes("?")
        if self.bounds() is not None:
            raise InvalidPattern("a repetition is repeated")
        return Repeat(node, least, most)

    def bounds(self) -> tuple[int, int | None] | None:
        """The repetition at this place; None if there is none. A brace that is no repetition is a character."""
        for operator, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.takes(operator):
                return bounds
        end = self.text.find("}", self.at)
        if end < 0 or not self.text.startswith("{", self.at):
            return None
        least, comma, most = self.text[self.at + 1 : end].partition(",")
        if not _is_number(least) or not (most == "" or _is_number(most)):
            return None
        self.at = end + 1
        return int(least), int(most) if most else (None if comma else int(least))

    def escape(self, flags: Flags) -> Node:
        character = self.next()
        if character in ANCHORS:
            return Anchor(ANCHORS[character])
        if character.lower() in CLASSES:
            return AnyOf(CLASSES[character.lower()], negated=character.isupper(), folds=flags.i)
        return _one(self.code(character), flags)

    def code(self, character: str) -> int:
        """The character that an escape stands for, of which the first character is read."""
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "x":
            return self.hexadecimal()
        if character in "01234567":
            digits = character
            while len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
                digits += self.next()
            if character != "0" and len(digits) == 1:
                raise InvalidPattern("back references are not supported")
            return int(digits, 8)
        if character.isalnum() and character.isascii():
            raise InvalidPattern(f"\\{character} is not supported")
        return ord(character)

    def hexadecimal(self) -> int:
        if self.takes("{"):
            digits, end, _ = self.text[self.at :].partition("}")
            self.at += len(digits) + len(end)
        else:
            digits = self.next() + self.next()
        try:
            code = int(digits, 16) if digits.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= LAST:
            raise InvalidPattern(f"\\x{digits} is no character")
        return code

    def char_class(self, flags: Flags) -> Node:
        negated = self.takes("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self.takes("]"):
            ranges += self.named_class() or self.code_range()
            is_first = False
        return AnyOf(tuple(ranges), negated=negated, folds=flags.i)

    def named_class(self) -> Ranges:
        """A class in a class, such as `\\d` or `[:alpha:]`; empty if there is none."""
        if self.takes("[:"):
            name, end, _ = self.text[self.at :].partition(":]")
            ranges = POSIX.get(name.removeprefix("^"))
            if not end or ranges is None:
                raise InvalidPattern(f"the class {name} is not known")
            self.at += len(name) + 2
            return _complement(ranges) if name.startswith("^") else ranges
        character = self.text[self.at + 1 : self.at + 2]
        if self.text.startswith("\\", self.at) and character and character.lower() in CLASSES:
            self.at += 2
            ranges = CLASSES[character.lower()]
            return _complement(ranges) if character.isupper() else ranges
        return ()

    def code_range(self) -> Ranges:
        low = high = self.class_code()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high = self.class_code()
        if high < low:
            raise InvalidPattern("a range ends before it begins")
        return ((low, high),)

    def class_code(self) -> int:
        character = self.next()
        return self.code(self.next()) if character == "\\" else ord(character)


def _one(code: int, flags: Flags) -> AnyOf:
    return AnyOf(((code, code),), folds=flags.i)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _complement(ranges: Ranges) -> Ranges:
    gaps, at = [], 0
    for low, high in sorted(ranges):
        gaps.append((at, low - 1))
        at = high + 1
    return (*(gap for gap in gaps if gap[0] <= gap[1]), (at, LAST))


def _with_flags(flags: Flags, words: str) -> Flags:
    on, _, off = words.partition("-")
    if set(on + off) - set("imsU") or words.endswith("-"):
        raise InvalidPattern("unknown flag of a group")
    return replace(flags, **dict.fromkeys(on, True), **dict.fromkeys(off, False))
