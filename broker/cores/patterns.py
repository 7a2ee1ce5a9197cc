"""Regular expressions that clients send, matched in linear time: a client cannot stall the broker with a pattern that backtracks.

The syntax is that of RE2, which Kafka uses (com.google.re2j), without Unicode classes. https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.cores.pattern_syntax import (
    Alternatives,
    Anchor,
    AnyOf,
    Group,
    InvalidPattern,
    Kind,
    Node,
    Repeat,
    is_word,
    parse,
)
from broker.light_named_tuples import NamedTuple

# The largest tree, in which a repetition counts as often as it repeats. It has at most twice as many instructions.
MAX_NODES = 1_000
# How many transitions are remembered. Ordinary patterns have a few dozen.
REMEMBERED = 2_000

_Threads = frozenset[int]


class _Instruction(NamedTuple):
    """One state: it takes a character, or leads on to others. The last one accepts."""

    takes: AnyOf | None = None
    anchor: Kind | None = None
    leads_to: tuple[int, ...] = ()


class Pattern:
    """A compiled pattern. It keeps the set of states that it may be in, and remembers where each character led."""

    def __init__(self, text: str) -> None:
        """Raises InvalidPattern."""
        self._program: list[_Instruction] = []
        self._nodes = 0
        start = self._compile(parse(text), self._add(_Instruction()))
        self._has_anchors = any(instruction.anchor is not None for instruction in self._program)
        self._start = frozenset({start})
        self._steps: dict[tuple[_Threads, str, str], _Threads] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        threads, before = self._start, ""
        for character in text:
            # Without anchors the character before makes no difference.
            key = threads, before if self._has_anchors else "", character
            after = self._steps.get(key)
            if after is None:
                after = self._step(*key)
                if len(self._steps) >= REMEMBERED:
                    self._steps.clear()
                self._steps[key] = after
            if not after:
                return False
            threads, before = after, character
        return 0 in self._closure(threads, before, "")

    def _step(self, threads: _Threads, before: str, character: str) -> _Threads:
        return frozenset(
            target
            for thread in self._closure(threads, before, character)
            if (taken := self._program[thread].takes) is not None and taken.contains(character)
            for target in self._program[thread].leads_to
        )

    def _closure(self, threads: Iterable[int], before: str, after: str) -> set[int]:
        """The states that are reached without a character, between these two."""
        reached: set[int] = set()
        waiting = list(threads)
        while waiting:
            thread = waiting.pop()
            if thread in reached:
                continue
            reached.add(thread)
            instruction = self._program[thread]
            if instruction.takes is None and (instruction.anchor is None or _holds(instruction.anchor, before, after)):
                waiting += instruction.leads_to
        return reached

    # ---- the program, built from its end -----------------------------------------------------------------------------

    def _add(self, instruction: _Instruction) -> int:
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: Node, then: int) -> int:
        """Add the node, to be followed by the state `then`; returns the state that begins it."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidPattern("the pattern is too large")
        if isinstance(node, AnyOf):
            return self._add(_Instruction(takes=node, leads_to=(then,)))
        if isinstance(node, Anchor):
            return self._add(_Instruction(anchor=node.kind, leads_to=(then,)))
        if isinstance(node, Group):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Alternatives):
            return self._add(_Instruction(leads_to=tuple(self._compile(branch, then) for branch in node.branches)))
        return self._compile_repeat(node, then)

    def _compile_repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self._add(_Instruction())
            begin = self._compile(node.node, loop)
            self._program[loop] = _Instruction(leads_to=(begin, then))
            then = loop
        else:
            end = then
            for _ in range(node.most - node.least):
                then = self._add(_Instruction(leads_to=(self._compile(node.node, then), end)))
        for _ in range(node.least):
            then = self._compile(node.node, then)
        return then


def _holds(kind: Kind, before: str, after: str) -> bool:
    """Whether an anchor holds between two characters; "" is the edge of the text."""
    match kind:
        case Kind.BEGIN_TEXT:
            return not before
        case Kind.END_TEXT:
            return not after
        case Kind.BEGIN_LINE:
            return before in ("", "\n")
        case Kind.END_LINE:
            return after in ("", "\n")
        case Kind.WORD_BOUNDARY:
            return is_word(before) != is_word(after)
        case Kind.NO_WORD_BOUNDARY:
            return is_word(before) == is_word(after)
