"""The configs of topics and of the broker as DescribeConfigs shows them: value, source and synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import TYPE_CHECKING

from broker.config.listener_options import PREFIX, find_listener_option, plain_name
from broker.config.option import Option, spell
from broker.config.options import OPTIONS
from broker.light_dataclasses import dataclass, replace
from broker.server.broker_layers import BrokerLayers
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
    CLIENT_METRICS = 7
    GROUP = 8


TYPE_NUMBERS = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "PASSWORD": 9}
# The same option in other units, in order of precedence; the log uses milliseconds.
_OTHER_UNITS = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.hours",),
    "log.roll.ms": ("log.roll.hours",),
}
# Of options that this broker lacks; these two have no default, because Kafka has the same in other units.
_WITHOUT_DEFAULT = ("log.flush.interval.ms", "log.roll.jitter.ms")
_TOPIC_DEFAULTS = {
    config.synonym: config.default for config in TOPIC_CONFIGS.values() if config.synonym not in _WITHOUT_DEFAULT
}
# Options that may change while the broker runs: the defaults of the topic configs.
DYNAMIC_OPTIONS = frozenset(config.synonym for config in TOPIC_CONFIGS.values() if config.synonym and config.used)


_Layers = tuple[tuple[Mapping[str, str], Source], ...]


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
    layers = _layers(resources)
    for name, config in TOPIC_CONFIGS.items():
        synonyms = list(_broker_synonyms(config.synonym, resources, layers)) if config.synonym else []
        value = synonyms[0].value if synonyms else _in_other_units(config.synonym, resources, config.default)
        if name in configs:
            value = config.shown(configs[name])
            synonyms.insert(0, Synonym(name, value, Source.TOPIC))
        doc = OPTIONS[config.synonym].doc if config.synonym and config.synonym in OPTIONS else None
        yield ConfigRow(name, value, TYPE_NUMBERS[config.type], False, synonyms, doc)


def broker_rows(resources: Resources) -> Iterator[ConfigRow]:
    """Every option of the broker, and those that single listeners set."""
    layers = _layers(resources)
    for name, option in OPTIONS.items():
        synonyms = list(_broker_synonyms(name, resources, layers))
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
                synonyms += _broker_synonyms(general, resources, layers)
            yield _broker_row(name, given[name], found.option, synonyms, None)


def _broker_row(name: str, value: str | None, option: Option, synonyms: list[Synonym], doc: str | None) -> ConfigRow:
    is_sensitive = option.kind == "password"
    if is_sensitive:
        value, synonyms = None, [replace(synonym, value=None) for synonym in synonyms]
    number = TYPE_NUMBERS[option.kind.upper()]
    return ConfigRow(name, value, number, name not in DYNAMIC_OPTIONS, synonyms, doc, is_sensitive)


def dynamic_rows(resources: Resources) -> Iterator[ConfigRow]:
    """The options of all brokers that were changed at run time."""
    for name, value in sorted(BrokerLayers(resources).of_all.items()):
        synonyms = [Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER)]
        option = OPTIONS.get(name)
        number = TYPE_NUMBERS[option.kind.upper()] if option else 0
        yield ConfigRow(name, value, number, False, synonyms, option.doc if option else None)


def own_rows(kind: int, name: str, resources: Resources) -> Iterator[ConfigRow]:
    """The configs of a group, or of a subscription to client metrics."""
    from broker.server.own_config_kinds import GROUP
    from broker.server.own_configs import own_configs

    given = resources.own_configs().of(kind, name)
    for config in own_configs(kind, resources.config):
        key = config.name
        value = given.get(key, config.default)
        value = str(int(value)) if config.type == "INT" else value
        if key in given:
            synonyms = [Synonym(key, value, Source.GROUP if kind == GROUP else Source.CLIENT_METRICS)]
        else:
            synonyms = [Synonym(key, value, Source.DEFAULT)] if kind == GROUP else []
        yield ConfigRow(key, value, TYPE_NUMBERS[config.type], False, synonyms, config.doc)


def _layers(resources: Resources) -> _Layers:
    """What was changed at run time, the stronger layer first."""
    if not resources.log.broker_configs:
        return ()
    layers = BrokerLayers(resources)
    return (layers.of_this, Source.DYNAMIC_BROKER), (layers.of_all, Source.DYNAMIC_DEFAULT_BROKER)


def _broker_synonyms(name: str, resources: Resources, layers: _Layers) -> Iterator[Synonym]:
    """The option and the same in other units. As in Kafka, there are none if the option itself has no value."""
    found = [Synonym(name, layer[name], source) for layer, source in layers if name in layer]
    names = (name, *_OTHER_UNITS.get(name, ()))
    given = resources.config.given
    found += [Synonym(each, given[each], Source.STATIC_BROKER) for each in names if each in given]
    defaults = {each: spell(OPTIONS[each].default) if each in OPTIONS else _TOPIC_DEFAULTS.get(each) for each in names}
    found += [Synonym(each, value, Source.DEFAULT) for each, value in defaults.items() if value is not None]
    return dropwhile(lambda synonym: synonym.name != name, found)


def _in_other_units(option: str | None, resources: Resources, default: str) -> str:
    """The value of a topic config whose option is set, or has its default, in other units."""
    if option == "log.retention.ms":
        return str(resources.config.retention_ms)
    return str(resources.config.roll_ms) if option == "log.roll.ms" else default
