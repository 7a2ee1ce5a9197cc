"""The configs of topics and of the broker as DescribeConfigs shows them: value, source and synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from broker.config.listener_options import PREFIX, find_listener_option, plain_name
from broker.config.option import Option, spell
from broker.config.options import OPTIONS
from broker.storage import TOPIC_CONFIGS

if TYPE_CHECKING:
    from broker.server.resources import Resources


class Source(IntEnum):
    """The source of a value, with Kafka's numbers."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


TYPE_NUMBERS = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "PASSWORD": 9}
# The same option in other units, in order of precedence; the log uses milliseconds.
_OTHER_UNITS = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.roll.ms": ("log.roll.hours",),
}
# Options that may change while the broker runs: the defaults of the topic configs.
DYNAMIC_OPTIONS = frozenset(config.synonym for config in TOPIC_CONFIGS.values() if config.synonym and config.used)


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One effective config. Its value is that of the first synonym; the others are the fallbacks, in order."""

    name: str
    value: str | None
    type_number: int
    read_only: bool
    synonyms: list[Synonym]
    doc: str | None
    is_sensitive: bool = False

    @property
    def source(self) -> Source:
        return self.synonyms[0].source if self.synonyms else Source.DEFAULT


def topic_rows(configs: Mapping[str, str], resources: Resources) -> Iterator[ConfigRow]:
    """Every topic config, as it applies to a topic that sets `configs`."""
    for name, config in TOPIC_CONFIGS.items():
        synonyms = list(_broker_synonyms(config.synonym, resources, Source.DYNAMIC_BROKER)) if config.synonym else []
        value = _effective(config.synonym, synonyms, resources) if synonyms else config.default
        if name in configs:
            value = configs[name]
            synonyms.insert(0, Synonym(name, value, Source.TOPIC))
        elif config.synonym is not None and not synonyms:
            synonyms = [Synonym(config.synonym, value, Source.DEFAULT)]
        doc = OPTIONS[config.synonym].doc if config.synonym and config.synonym in OPTIONS else None
        yield ConfigRow(name, value, TYPE_NUMBERS[config.type], False, synonyms, doc)


def broker_rows(resources: Resources) -> Iterator[ConfigRow]:
    """Every option of the broker, and those that single listeners set."""
    for name, option in OPTIONS.items():
        synonyms = list(_broker_synonyms(name, resources, Source.DYNAMIC_BROKER))
        value = resources.log.broker_configs.get(name, spell(resources.config.value_of(name)))
        yield _broker_row(name, value, option, synonyms, option.doc)
    given = resources.config.given
    for name in given:
        found = find_listener_option(name) if name.startswith(PREFIX) else None
        if found is not None:
            general = plain_name(name)
            synonyms = [Synonym(name, given[name], Source.STATIC_BROKER)]
            # The option of a mechanism has no general value in Kafka.
            if general == found.key:
                synonyms += _broker_synonyms(general, resources, Source.DYNAMIC_BROKER)
            yield _broker_row(name, given[name], found.option, synonyms, None)


def _broker_row(name: str, value: str | None, option: Option, synonyms: list[Synonym], doc: str | None) -> ConfigRow:
    is_sensitive = option.kind == "password"
    if is_sensitive:
        value, synonyms = None, [replace(synonym, value=None) for synonym in synonyms]
    number = TYPE_NUMBERS[option.kind.upper()]
    return ConfigRow(name, value, number, name not in DYNAMIC_OPTIONS, synonyms, doc, is_sensitive)


def dynamic_rows(resources: Resources) -> Iterator[ConfigRow]:
    """The options that were changed at run time."""
    for name, value in sorted(resources.log.broker_configs.items()):
        synonyms = [Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER)]
        option = OPTIONS.get(name)
        number = TYPE_NUMBERS[option.kind.upper()] if option else 0
        yield ConfigRow(name, value, number, False, synonyms, option.doc if option else None)


def _broker_synonyms(name: str, resources: Resources, dynamic: Source) -> Iterator[Synonym]:
    if name in resources.log.broker_configs:
        yield Synonym(name, resources.log.broker_configs[name], dynamic)
    names = (name, *_OTHER_UNITS.get(name, ()))
    for given in names:
        if given in resources.config.given:
            yield Synonym(given, resources.config.given[given], Source.STATIC_BROKER)
    for known in names:
        if known in OPTIONS and OPTIONS[known].default is not None:
            yield Synonym(known, spell(OPTIONS[known].default), Source.DEFAULT)


def _effective(option: str | None, synonyms: list[Synonym], resources: Resources) -> str | None:
    """The value of the first synonym, in the units of the topic config."""
    first = synonyms[0]
    if first.source is Source.DYNAMIC_BROKER or first.name == option:
        return first.value
    return str(resources.config.retention_ms if option == "log.retention.ms" else resources.config.roll_ms)
