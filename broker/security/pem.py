"""PEM texts as Kafka takes them: with explanations between the blocks, or on one line, as in a properties file. Pure."""

from __future__ import annotations

import re
import textwrap
from base64 import b64decode, b64encode

# As in Kafka's PemParser, except that headers such as Proc-Type may stand in a block.
_BLOCK = re.compile(r"-----BEGIN\s+([A-Z0-9 ]+?)\s*-----(.*?)-----END\s+\1\s*-----", re.DOTALL)
_HEADERS = re.compile(r"\s*(?:[A-Za-z0-9-]+: [^\n]*\n)+")


class BadPem(Exception):
    """A text without the PEM block that it should have."""


def certificates(text: str) -> str:
    """The certificates of a text, one block each. Raises BadPem if there is none."""
    found = [_block(label, body) for label, body in _BLOCK.findall(text) if label == "CERTIFICATE"]
    if not found:
        raise BadPem("it has no certificate in PEM")
    return "".join(found)


def first_certificate(text: str) -> bytes:
    """The first certificate of a text, as DER. Raises BadPem if there is none."""
    block = certificates(text).partition("-----END")[0]
    return b64decode("".join(line for line in block.splitlines()[1:] if ":" not in line))


def private_key(text: str) -> str:
    """The first private key of a text. Raises BadPem if there is none."""
    for label, body in _BLOCK.findall(text):
        if label.endswith("PRIVATE KEY"):
            return _block(label, body)
    raise BadPem("it has no private key in PEM")


def is_encrypted(key: str) -> bool:
    return "BEGIN ENCRYPTED" in key or "Proc-Type: 4,ENCRYPTED" in key


def from_der(label: str, der: bytes) -> str:
    return _block(label, b64encode(der).decode())


def _block(label: str, body: str) -> str:
    headers = found.group() + "\n" if (found := _HEADERS.match(body)) else ""
    text = "".join(body[len(found.group()) if found else 0 :].split())
    lines = "\n".join(textwrap.wrap(text, 64))
    return f"-----BEGIN {label}-----\n{headers.lstrip()}{lines}\n-----END {label}-----\n"
