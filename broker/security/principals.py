"""The principal of a client certificate by `ssl.principal.mapping.rules`. Pure.

See org.apache.kafka.common.security.ssl.SslPrincipalMapper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from broker.light_named_tuples import NamedTuple
from broker.security.certificates import subject_of

USER = "User:"

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_RULES = re.compile(rf"\s*({_RULE}.*?|(?:.*?))\s*(?:,\s*|$)", re.DOTALL)


class BadRule(ValueError):
    """A mapping rule that cannot be understood."""


class NoPrincipal(Exception):
    """The certificate of a client does not give it a principal; the text says why."""


class NoRuleApplies(NoPrincipal):
    """No mapping rule matches the name of a certificate."""


class Rule(NamedTuple):
    """`pattern` is None for DEFAULT, which keeps the whole name. The replacement is texts and the groups to insert."""

    pattern: re.Pattern[str] | None
    replacement: list[str | int]
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # As in Kafka, every match in the name is replaced: the pattern .* also matches at its end.
        mapped = self.pattern.sub(self._expand, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)

    def _expand(self, found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in self.replacement)


class PrincipalMapper:
    """Maps the names of certificates to the names of users, by the first rule that matches."""

    def __init__(self, rules: str) -> None:
        """Raises BadRule."""
        self._rules = _parse(rules)

    def principal(self, certificate: bytes | None) -> str:
        """The principal of a client with this certificate (DER), or with none. Raises NoRuleApplies."""
        return f"{USER}{'ANONYMOUS' if certificate is None else self.map(subject_of(certificate))}"

    def map(self, name: str) -> str:
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return mapped
        raise NoRuleApplies(f"no rule of ssl.principal.mapping.rules applies to {name}")


def _parse(text: str) -> list[Rule]:
    found = []
    for match in _RULES.finditer(text.strip()):
        rule = match[1]
        parsed = re.match(_RULE, rule)
        if not rule:
            continue
        if parsed is None or parsed.end() != len(rule):
            raise BadRule(f"{rule!r} is not DEFAULT or RULE:pattern/replacement/[LU]")
        if parsed[1]:
            found.append(Rule(None, [], ""))
            continue
        try:
            # Java names groups without the P.
            pattern = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", _without_escaped_slashes(parsed[2])))
        except re.error as error:
            raise BadRule(f"the pattern of {rule!r} is not a regular expression: {error}") from None
        replacement = list(_references(_without_escaped_slashes(parsed[3]), pattern))
        found.append(Rule(pattern, replacement, parsed[4]))
    return found


def _without_escaped_slashes(text: str) -> str:
    return text.replace("\\/", "/")


_REFERENCE = re.compile(r"\\(.)|\$(?:(\d+)|\{(\w+)\})|(.)", re.DOTALL)


def _references(replacement: str, pattern: re.Pattern[str]) -> Iterator[str | int]:
    """The parts of a replacement: $1 and ${name} are groups, as in java.util.regex. Raises BadRule."""
    for escaped, digits, name, char in _REFERENCE.findall(replacement):
        if digits and (pattern.groups or not int(digits)):
            # The longest number that is a group; what follows it is text. Kafka takes a group that is missing as text, too.
            length = len(digits)
            while length and int(digits[:length]) > pattern.groups:
                length -= 1
            yield int(digits[:length]) if length else "$"
            yield digits[length:]
        elif digits or name or char == "$":
            if name not in pattern.groupindex:
                raise BadRule(f"the replacement {replacement!r} refers to a group that its pattern lacks")
            yield pattern.groupindex[name]
        else:
            yield escaped or char
