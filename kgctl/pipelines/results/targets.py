"""Reads `--sink` and the file with the headers of webhooks. Error messages show no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from kgctl.client.net.errors import BadValue

KINDS = ("kafka", "prometheus", "webhook")
FORMS = ("kafka:TOPIC", "prometheus:FILE.prom", "webhook:URL", "webhook:@FILE with the URL")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_OWN_HEADERS = frozenset({"content-length", "host", "transfer-encoding", "connection"})


@dataclass(frozen=True, slots=True)
class Target:
    """`where` is the topic, the absolute path or the URL. A URL may be a secret: only `label` is shown."""

    kind: str
    where: str = field(repr=False)

    @property
    def label(self) -> str:
        if self.kind != "webhook":
            return f"{self.kind}:{self.where}"
        parts = urlsplit(self.where)
        return f"webhook:{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def parse_target(text: str) -> Target:
    """`webhook:@FILE` reads the URL from a file. Raises BadValue."""
    kind, colon, where = text.partition(":")
    if not colon or kind not in KINDS or not where:
        # Not the text itself: it may be a URL with a secret.
        raise BadValue(f"a sink is {', '.join(FORMS)}")
    if kind == "kafka":
        if not _TOPIC.fullmatch(where) or where in (".", ".."):
            raise BadValue(f"{where!r} is not the name of a topic")
    elif kind == "prometheus":
        path = Path(where).absolute()
        if path.is_dir() or not path.parent.is_dir():
            raise BadValue(f"{where!r} is a folder" if path.is_dir() else f"the folder {path.parent} does not exist")
        if path.suffix != ".prom":
            raise BadValue(f"{where!r} does not end in .prom: the textfile collector would not read it")
        where = str(path)
    else:
        where = _url(_read(where[1:]).strip() if where.startswith("@") else where)
    return Target(kind, where)


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
        # As a request will do, which fails for an empty label, or one of more than 63 characters.
        (host or "").encode("idna")
    except ValueError:
        raise BadValue("the URL of the webhook is not valid") from None
    if parts.scheme not in ("http", "https") or not host or not text.isascii() or re.search(r"[\s\x00-\x1f]", text):
        raise BadValue("the URL of a webhook is https://HOST/PATH")
    if "@" in parts.netloc:
        raise BadValue("the URL of a webhook must not contain a user or a password: use --webhook-headers")
    return text


def read_headers(path: Path, targets: Sequence[Target]) -> tuple[tuple[str, str], ...]:
    """One `Name: value` per line; empty lines and lines with # are skipped. Raises BadValue."""
    found = []
    for number, line in enumerate(_read(str(path)).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        value = value.strip()
        if not colon or not _HEADER.fullmatch(name) or not value or not (value.isascii() and value.isprintable()):
            raise BadValue(f"{path}, line {number}: a header is `Name: value`")
        if name.lower() in _OWN_HEADERS:
            raise BadValue(f"{path}, line {number}: {name} cannot be set")
        found.append((name, value))
    for target in targets:
        # A request accepts schemes in upper case, too; urlsplit lowers them.
        if target.kind == "webhook" and urlsplit(target.where).scheme != "https" and not _is_local(target.where):
            raise BadValue(f"{target.label} would get the headers unencrypted: use https")
    return tuple(found)


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise BadValue(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadValue(f"{path} is not text in UTF-8") from None
