"""Read the value of `sasl.jaas.config`: one login module with its options, in the grammar of Java's JAAS files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from broker.light_dataclasses import dataclass
from broker.security.secret import Secret

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")

# As java.io.StreamTokenizer reads it in Kafka's JaasConfig: a lone slash also starts a comment.
_TOKEN = re.compile(
    r"(?P<skipped>\s+|/\*.*?(?:\*/|\Z)|/[^\n]*)"
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"|(?P<word>[A-Za-z_$\x80-\U0010ffff][\w.$-]*)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not one login module. The error never repeats a value."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module. Any of its options may be a password, so all of them are secrets."""

    name: str
    control_flag: str
    options: Mapping[str, Secret]

    def option(self, name: str) -> str | None:
        """The text of an option that is not secret, such as a user name."""
        found = self.options.get(name)
        return None if found is None else found.reveal()


def parse(text: str | Secret) -> LoginModule:
    """Parse `MODULE required NAME="VALUE" ...;`. Raises JaasError."""
    tokens = list(_tokens(text.reveal() if isinstance(text, Secret) else text))
    if not tokens:
        raise JaasError("the JAAS configuration is empty")
    end = next((at for at, (kind, found) in enumerate(tokens) if kind == "sign" and found == ";"), None)
    if end is None:
        raise JaasError("the JAAS configuration does not end with a semicolon")
    if end + 1 < len(tokens):
        raise JaasError("the JAAS configuration has more than one login module")
    if end < 2 or tokens[0][0] == "sign" or tokens[1][1].lower() not in CONTROL_FLAGS:
        raise JaasError(f"the JAAS configuration must start with a login module and one of {', '.join(CONTROL_FLAGS)}")
    return LoginModule(tokens[0][1], tokens[1][1].lower(), _options(tokens[2:end]))


def _options(tokens: list[tuple[str, str]]) -> dict[str, Secret]:
    options: dict[str, Secret] = {}
    for at in range(0, len(tokens), 3):
        kind, name = tokens[at]
        if kind == "sign":
            raise JaasError("the JAAS configuration has a sign where the name of an option should be")
        rest = tokens[at + 1 : at + 3]
        if len(rest) < 2 or rest[0] != ("sign", "=") or rest[1][0] == "sign":
            # Not by its name: without the right quotes, it may be a part of a password.
            raise JaasError(f"option {at // 3 + 1} of the JAAS configuration has no value, or one that needs quotes")
        options[name] = Secret(rest[1][1])
    return options


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a kind ("word", "text" or "sign") and the token's text."""
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "double" | "single":
                yield "text", _ESCAPE.sub(_unescaped, found[found.lastgroup])
            case "word" | "sign":
                yield found.lastgroup, found[0]


def _unescaped(found: re.Match[str]) -> str:
    escaped: str = found[1]
    if escaped.isdigit() and escaped < "8":
        return chr(int(escaped, 8))
    return _CONTROLS.get(escaped, escaped)
