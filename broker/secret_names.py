"""Which configs, properties and options may have secret values: decided by their names, in this place only."""

from __future__ import annotations

import re

# Kafka's configs of the type password, with any prefix, and what clients and tools call theirs. Anywhere in a name, with any case.
PATTERN = (
    r"pass(?:w|phrase)|secret|token|credential|jaas|private|api[._-]?key|key\.pem"
    r"|keystore\.(?:key|certificate)|truststore\.certificates|auth\.user\.info"
)
_NAMES = re.compile(rf"(?i){PATTERN}|\bsasl\.mechanism\.oauth")
# Such a value says where a secret is, or is a number or the name of something.
_OPEN = re.compile(
    r"(?i).*[._](file|location|url|command|type|ms|seconds|iterations|length|algorithm|class|client\.id)"
)


def may_be_secret(name: str) -> bool:
    """Whether any part of this name is that of a secret: for command lines, where it is better to hide too much."""
    return _NAMES.search(name) is not None


def is_secret(name: str) -> bool:
    """Whether a config or property with this name has a secret value."""
    return may_be_secret(name) and _OPEN.fullmatch(name) is None
