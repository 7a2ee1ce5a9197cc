"""The principal of a client certificate: its distinguished name as Java writes it, and `ssl.principal.mapping.rules`. Pure.

See javax.security.auth.x500.X500Principal (RFC 2253) and org.apache.kafka.common.security.ssl.SslPrincipalMapper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

USER = "User:"

_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString
_TEXTS = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED = frozenset(',=+<>#;"\\')

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_RULES = re.compile(rf"\s*({_RULE}.*?|(?:.*?))\s*(?:,\s*|$)", re.DOTALL)


class BadRule(ValueError):
    """A mapping rule that cannot be understood."""


class NoRuleApplies(Exception):
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


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER), the most specific part first: "CN=alice,O=Example,C=DE"."""
    (_, fields), *_ = _elements(_content(certificate))
    tags = list(_elements(fields))
    # version (optional), serial number, signature algorithm, issuer, validity, subject
    subject = tags[5 if tags[0][0] == _VERSION else 4][1]
    parts = ["+".join(map(_attribute, _elements(names))) for _, names in _elements(subject)]
    return ",".join(reversed(parts))


def _attribute(element: tuple[int, bytes]) -> str:
    (_, oid), (tag, value) = _elements(element[1])
    dotted = _dotted(oid)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or dotted}=#{_encoded(tag, value).hex()}"
    text = "".join(_escape(char) for char in value.decode("utf-8", "replace"))
    bare = text.strip(" \r")
    lead, trail = len(text) - len(text.lstrip(" \r")), len(text) - len(text.rstrip(" \r"))
    if not bare:
        return f"{keyword}=" + "".join("\\" + char for char in text)
    escaped = ("".join("\\" + char for char in part) for part in (text[:lead], text[len(text) - trail :]))
    return f"{keyword}={next(escaped)}{bare}{next(escaped)}"


def _escape(char: str) -> str:
    if char == "\0":
        return "\\00"
    return "\\" + char if char in _ESCAPED else char


def _content(data: bytes) -> bytes:
    (_, content), *_ = _elements(data)
    return content


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The DER elements of a content: tag and content of each. OpenSSL has checked the certificate."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            start, at = at, at + (length & 0x7F)
            length = int.from_bytes(data[start:at], "big")
        yield tag, data[at : at + length]
        at += length


def _encoded(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content


def _dotted(oid: bytes) -> str:
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
