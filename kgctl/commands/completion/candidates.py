"""What may stand at a place of a command line. The metavar of a parameter says what its values are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker.light_named_tuples import NamedTuple
from kgctl.commands.completion.place import Place, find_place
from kgctl.commands.shared.effects import kinds_of
from kgctl.commands.shared.options import COLORS, complete_contexts


class Candidate(NamedTuple):
    value: str
    help: str = ""


class Candidates(NamedTuple):
    """`files`: the shell completes names of files."""

    found: list[Candidate]
    files: bool = False


class Wanted(NamedTuple):
    """Names that only the cluster knows: "groups", "topics", or what the members of a group have in common."""

    kind: str
    group: str = ""


Names = Callable[[Wanted, Place], Sequence[str]]
FILES = ("FILE", "DIR", "PATH", "CSV")
_MEMBERS = {"--member": "members", "--instance": "instances", "--host": "hosts"}
_ENUMERATION = re.compile(r"[\w.]+(\|[\w.]+)+")


def candidates(root: Any, words: Sequence[str], incomplete: str, names: Names) -> Candidates:
    """All that begins with the incomplete word. `names` asks the cluster."""
    place = find_place(root, words, incomplete)
    if place.command is None:
        return Candidates([])
    if place.parameter is not None or place.habit is not None:
        return _values(place, names)
    if incomplete.startswith("-"):
        name, equals, value = incomplete.partition("=")
        return _after_equals(place, name, value, names) if equals else Candidates(_options(place))
    if hasattr(place.command, "commands"):
        found = [Candidate(name, _line(one.help)) for name, one in place.command.commands.items() if not one.hidden]
        return Candidates(_starting(found, incomplete))
    return Candidates([])


def _options(place: Place) -> list[Candidate]:
    found = []
    for parameter in place.command.params:
        is_repeatable = parameter.multiple if hasattr(parameter, "multiple") else False
        if parameter.param_type_name != "option" or parameter.hidden:
            continue
        if is_repeatable or not place.given.keys() & {*parameter.opts, *parameter.secondary_opts}:
            found += [
                Candidate(name, _line(parameter.help))
                for name in (*parameter.opts, *parameter.secondary_opts)
                if name.startswith("--")
            ]
    return _starting([*found, Candidate("--help", "Show this page and exit.")], place.incomplete)


def _after_equals(place: Place, name: str, value: str, names: Names) -> Candidates:
    from kgctl.commands.completion.place import option_of

    place.parameter = option_of(place.command, name)
    if place.parameter is None:
        return Candidates([])
    place.incomplete = value
    found = _values(place, names)
    return Candidates([one._replace(value=f"{name}={one.value}") for one in found.found], found.files)


def _values(place: Place, names: Names) -> Candidates:
    is_option = place.habit is None and place.parameter.param_type_name == "option"
    flags = tuple(place.parameter.opts) if is_option else ()
    metavar = (place.habit or "").lstrip("-").upper() or (place.parameter.metavar or "")
    what = metavar.strip("[].").split("[")[0].split(":")[0].removesuffix("...")
    if what in FILES:
        return Candidates([], files=True)
    *before, last = place.incomplete.split(",") if "," in metavar else [place.incomplete]
    head = "".join(f"{part}," for part in before)
    known = list(_known(place, flags, what, names))
    taken = set(before) | (set(place.values(what)) if not flags else set())
    values = [Candidate(head + one) for one in dict.fromkeys(known) if one not in taken and one.startswith(last)]
    return Candidates([one for one in values if one.value.isprintable()])


def _known(place: Place, flags: tuple[str, ...], what: str, names: Names) -> Iterable[str]:
    if what == "GROUP":
        return names(Wanted("groups"), place)
    if what == "TOPIC":
        return names(Wanted("topics"), place)
    for flag in flags:
        if flag in _MEMBERS:
            groups = place.values("GROUP", "--group")
            return names(Wanted(_MEMBERS[flag], groups[0]), place) if groups else ()
    if place.path[:1] == ("configs",) and what in ("TYPE", "NAME") and not flags:
        return _configured(place, what, names)
    if "--context" in flags or (place.path[:1] == ("context",) and what == "NAME" and not flags):
        return complete_contexts("")
    return _enumerated(place, flags, what)


def _configured(place: Place, what: str, names: Names) -> Iterable[str]:
    """Types of resources with configs, or names of resources of the type before."""
    from kgctl.client.admin.configs import ALL_BROKERS, BROKER, GROUP, TOPIC
    from kgctl.commands.configs.arguments import TYPES

    if what == "TYPE":
        return TYPES
    kind = next(iter(place.values("TYPE")), "").lower().removesuffix("s")
    if kind in (TOPIC, GROUP):
        return names(Wanted(f"{kind}s"), place)
    return (ALL_BROKERS,) if kind == BROKER else ()


def _enumerated(place: Place, flags: tuple[str, ...], what: str) -> Iterable[str]:
    if "--output" in flags:
        from kgctl.render.formats import FORMATS

        return FORMATS
    if "--color" in flags:
        return COLORS
    if "--state" in flags:
        return _states(place)
    if "--type" in flags and what == "TYPE":
        from kgctl.model.groups import TYPES

        return TYPES
    if flags and flags[0] in ("--columns", "--sort"):
        return _columns(place.command)
    if what == "KIND":
        from kgctl.render.layouts import LAYOUTS

        return sorted(LAYOUTS)
    if what == "TOOL":
        from kgctl.compat.tools import TOOLS

        return TOOLS
    if what == "SHELL":
        from kgctl.commands.completion.options import SHELLS

        return SHELLS
    return what.split("|") if _ENUMERATION.fullmatch(what) else ()


def _states(place: Place) -> Iterable[str]:
    if place.path[:1] == ("groups",):
        from kgctl.model.groups import STATES

        return STATES
    from kgctl.model.transactions import STATES as TRANSACTION_STATES

    return TRANSACTION_STATES


def _columns(command: Any) -> list[str]:
    from kgctl.render.layouts import LAYOUTS
    from kgctl.render.selection import keys_of

    return [key for kind in kinds_of(command) for key in keys_of(LAYOUTS[kind])]


def _starting(found: Iterable[Candidate], incomplete: str) -> list[Candidate]:
    return [one for one in found if one.value.startswith(incomplete)]


def _line(text: str | None) -> str:
    """The first line of a help text."""
    first = " ".join((text or "").split("\n\n")[0].split())
    return first if first.isprintable() else ""
