"""Options of one listener: `listener.name.<name>.<option>` and `listener.name.<name>.<mechanism>.<option>`."""

from __future__ import annotations

from broker.config.option import ConfigError, Option
from broker.config.options import OPTIONS
from broker.light_dataclasses import replace
from broker.light_named_tuples import NamedTuple

PREFIX = "listener.name."
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")


class ListenerOption(NamedTuple):
    """An option of one listener. `key` is its name there: with the mechanism in lower case, if it is for one only."""

    listener: str
    key: str
    option: Option


def find_listener_option(name: str) -> ListenerOption | None:
    """The option that a full name sets; None if listeners have no such option. Raises ConfigError for a listener or a mechanism
    in upper case: Kafka ignores the option, which is dangerous if it demands certificates or signatures."""
    listener, _, key = name.removeprefix(PREFIX).partition(".")
    if listener != listener.lower():
        raise ConfigError(f"{PREFIX}{listener}: write the name of the listener in lower case here")
    mechanism = key.partition(".")[0]
    if mechanism.upper() in MECHANISMS and mechanism != mechanism.lower():
        raise ConfigError(f"{PREFIX}{listener}.{mechanism}: write the name of the mechanism in lower case here")
    found = OPTIONS.get(key)
    if found is None or not found.per_listener:
        found = OPTIONS.get(plain_name(name))
        if found is None or not found.per_mechanism:
            return None
    # Errors show the full name.
    return ListenerOption(listener.upper(), key, replace(found, name=name))


def plain_name(name: str) -> str:
    """The name of an option without its prefix, its listener and its mechanism."""
    key = name.removeprefix(PREFIX).partition(".")[2]
    # Names of mechanisms have no dots, and no option begins like one.
    mechanism, _, rest = key.partition(".")
    return rest if mechanism.upper() in MECHANISMS else key
