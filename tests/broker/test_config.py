"""Broker options: Kafka's names, types and defaults, files and overrides, and error messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker.config.config import BrokerConfig, load_config
from broker.config.exposure import why_insecure
from broker.config.ignored_options import UNIMPLEMENTED
from broker.config.listeners import Endpoint, NamedAddress
from broker.config.option import INT_MAX, ConfigError, spell
from broker.config.options import OPTIONS
from broker.config.properties import format_properties, parse_properties
from broker.config.renamed_options import FORMER, FORMER_PREFIXES
from broker.cores.transactions.settings import TransactionSettings
from broker.security.secret import Secret
from broker.server.group_configs import GROUP_CONFIGS
from tests.harness import ROOT


def options(*overrides: str) -> BrokerConfig:
    return load_config(overrides=overrides)


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(overrides=overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults_match_kafka_except_the_initial_rebalance_delay():
    config = load_config()
    assert config.auto_create_topics_enable is True
    assert config.num_partitions == 1
    assert config.offsets_topic_num_partitions == 50
    assert config.message_max_bytes == 1048588
    assert config.group_min_session_timeout_ms == 6000
    assert config.group_initial_rebalance_delay_ms == 0
    assert config.node_id == 1
    assert config.listen == [NamedAddress("PLAINTEXT", "PLAINTEXT", Endpoint("127.0.0.1", 9092))]
    assert config.advertised == {}
    assert config.retention_ms == 7 * 24 * 3600 * 1000
    assert config.given == {}
    assert config.warnings == []


def test_a_config_is_immutable():
    with pytest.raises(AttributeError):
        load_config().num_partitions = 2  # type: ignore[misc]


def test_each_default_is_within_its_bounds():
    for option in OPTIONS.values():
        text = spell(option.default)
        if text is not None:
            assert option.parse(text) == option.default, option.name


def test_no_option_is_both_implemented_and_ignored():
    assert not set(OPTIONS) & UNIMPLEMENTED


def test_every_option_is_used():
    """An option that no code reads belongs in the list of ignored options."""
    root = ROOT / "broker"
    tables = ("options.py", "security_options.py", "ignored_options.py")
    code = "".join(path.read_text() for path in root.rglob("*.py") if path.name not in tables)
    # Options of listeners are read by their names.
    code = code.replace('f"ssl.{kind}.', '"ssl.keystore.') + code.replace('f"ssl.{kind}.', '"ssl.truststore.')
    # So are the bounds of the configs of groups.
    code += "".join(f'"{bound}"' for config in GROUP_CONFIGS.values() for bound in (config.low, config.high))
    unread = [name for name, option in OPTIONS.items() if option.field_name not in code and f'"{name}"' not in code]
    assert unread == []


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("num.partitons=3", "unknown option num.partitons; did you mean num.partitions?"),
        ("group.initial.rebalance.delay=0", "did you mean group.initial.rebalance.delay.ms?"),
        ("xyzzy=1", "unknown option xyzzy"),
        ("num.partitions=three", "num.partitions=three: not a whole number"),
        ("num.partitions=1_000", "not a whole number"),
        ("num.partitions=+-1", "not a whole number"),
        ("num.partitions=", "not a whole number"),
        ("num.partitions=0", "must be at least 1"),
        ("auto.create.topics.enable=yes", "must be true or false"),
        ("log.cleaner.min.cleanable.ratio=1.1", "must be from 0 to 1"),
        ("log.cleaner.min.cleanable.ratio=nan", "must be from 0 to 1"),
        ("log.cleaner.min.cleanable.ratio=half", "not a number"),
        ("log.cleanup.policy=compact,drop", "'drop' is not one of compact, delete"),
        ("log.message.timestamp.type=Now", "'Now' is not one of CreateTime, LogAppendTime"),
        ("log.retention.ms=0", "must be -1 (forever) or more than 0"),
        ("log.roll.ms=0", "must be at least 1"),
        ("default.replication.factor=3", "a single node and holds one replica"),
        ("listeners=127.0.0.1:9092", "is not NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://127.0.0.1:65536", "a port is at most 65535"),
        ("listeners=PLAINTEXT://::1:9092", "put an IPv6 host in brackets"),
        ("listeners=", "give at least one listener"),
        ("listeners=INSIDE://127.0.0.1:9092", "listener.security.protocol.map has no protocol for INSIDE"),
        ("listeners=PLAINTEXT://127.0.0.1:1,plaintext://127.0.0.1:2", "two listeners have the name PLAINTEXT"),
        (
            "listeners=PLAINTEXT://127.0.0.1:1,SASL_PLAINTEXT://127.0.0.1:1",
            "PLAINTEXT and SASL_PLAINTEXT have the same port",
        ),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "give addresses that clients can reach"),
        ("advertised.listeners=SSL://127.0.0.1:9092", "SSL is not one of listeners=PLAINTEXT://127.0.0.1:9092"),
        ("listener.security.protocol.map=A:TLS", "'A:TLS' is not NAME:PROTOCOL with one of PLAINTEXT, SSL,"),
        ("max.connections.per.ip.overrides=localhost", "'localhost' is not HOST:NUMBER"),
        ("max.connections.per.ip=0", "needs max.connections.per.ip.overrides"),
        ("nonsense", "must be key=value"),
    ],
)
def test_an_invalid_option_is_refused_in_one_line(override: str, message: str):
    assert message in refusal(override)


def test_bounds_are_inclusive():
    assert options("num.partitions=1").num_partitions == 1
    assert options(f"num.partitions={INT_MAX}").num_partitions == INT_MAX
    assert "at most" in refusal(f"num.partitions={INT_MAX + 1}")
    assert options("group.min.session.timeout.ms=5", "group.max.session.timeout.ms=5").group_max_session_timeout_ms == 5
    assert "more than" in refusal("group.min.session.timeout.ms=6", "group.max.session.timeout.ms=5")


def test_a_policy_may_be_spelled_in_any_case():
    option = OPTIONS["group.consumer.migration.policy"]
    assert (option.parse("UPGRADE"), option.parse("Disabled")) == ("upgrade", "disabled")
    with pytest.raises(ConfigError, match="'sideways' is not one of bidirectional, upgrade, downgrade, disabled"):
        option.parse("sideways")


def test_an_unimplemented_option_of_kafka_warns_once_and_is_listed():
    config = options("num.io.threads=8", "num.io.threads=9", "listener.name.outside.ssl.provider=x")
    assert config.unimplemented == ("listener.name.outside.ssl.provider", "num.io.threads")
    assert len(config.warnings) == 2
    assert "num.io.threads" in config.warnings[1]


def test_an_option_of_a_listener_overrides_the_general_one():
    config = options(
        "listeners=INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2",
        "listener.security.protocol.map=INSIDE:SSL,OUTSIDE:SASL_SSL",
        "ssl.client.auth=requested",
        "listener.name.inside.ssl.client.auth=required",
        "listener.name.outside.max.connections=3",
        "listener.name.elsewhere.ssl.client.auth=required",
    )
    assert config.listener_value("INSIDE", "ssl.client.auth") == "required"
    assert config.listener_value("OUTSIDE", "ssl.client.auth", "PLAIN") == "requested"
    assert config.listener_value("OUTSIDE", "max.connections") == 3
    assert config.listener_value("INSIDE", "max.connections") == config.max_connections
    assert config.warnings == [
        "option listener.name.elsewhere.ssl.client.auth is ignored: there is no listener ELSEWHERE"
    ]
    assert "listener.name.inside.ssl.client.auth=no: 'no' is not one of" in refusal(
        "listener.name.inside.ssl.client.auth=no"
    )
    assert "did you mean ssl.client.auth?" in refusal("listener.name.inside.ssl.client.aut=none")
    assert "lower case" in refusal("listener.name.INSIDE.ssl.client.auth=none")
    assert "lower case" in refusal("listener.name.inside.OAUTHBEARER.sasl.oauthbearer.jwks.endpoint.url=file:///keys")


def test_the_text_of_a_password_is_nowhere_but_in_its_secret():
    names = ["ssl.keystore.password", "listener.name.plaintext.ssl.key.password"]
    config = load_config(overrides=dict.fromkeys(names, "hunter2"))
    found = [config.ssl_keystore_password, config.listener_value("PLAINTEXT", "ssl.key.password")]
    assert [secret.reveal() for secret in found if isinstance(secret, Secret)] == ["hunter2", "hunter2"]
    assert [config.given[name] for name in names] == ["[hidden]", "[hidden]"]
    assert "hunter2" not in repr(vars(config))
    assert spell(config.ssl_keystore_password) == "[hidden]"


def test_the_shortest_unit_of_retention_wins_and_a_negative_value_means_forever():
    assert options("log.retention.hours=2").retention_ms == 7_200_000
    assert options("log.retention.hours=2", "log.retention.minutes=3").retention_ms == 180_000
    assert options("log.retention.minutes=3", "log.retention.ms=7").retention_ms == 7
    assert options("log.retention.minutes=-5").retention_ms == -1
    assert options("log.roll.hours=1").roll_ms == 3_600_000


def test_later_files_override_earlier_ones_then_overrides_then_listen(tmp_path: Path):
    first, second = tmp_path / "a.properties", tmp_path / "b.properties"
    first.write_text("num.partitions=2\nnode.id=7\nlisteners=PLAINTEXT://127.0.0.1:1\n")
    second.write_text("num.partitions=3\ngroup.max.size=9\n")
    config = load_config([first, second], ["group.max.size=10"], listen="[::1]:0")
    assert (config.num_partitions, config.node_id, config.group_max_size) == (3, 7, 10)
    assert [str(address.endpoint) for address in config.listen] == ["[::1]:0"]
    assert config.given["num.partitions"] == "3"


def test_an_unreadable_config_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"missing\.properties: No such file"):
        load_config([tmp_path / "missing.properties"])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("# mine\n\nnum.partitions=three\n", 3, "num.partitions=three: not a whole number"),
        ("node.id=1\nnum.partitons=3\n", 2, "unknown option num.partitons; did you mean num.partitions?"),
        ("node.id=1\nlog.cleanup.policy=compact,\\\n  drop\n", 2, "'drop' is not one of"),
        ("node.id=1\nlisteners=nowhere\n", 2, "listeners=nowhere: 'nowhere' is not NAME://HOST:PORT"),
        ("node.id=1\nnum.partitions=\\u12\n", 2, "malformed"),
    ],
)
def test_an_error_in_a_file_names_its_line(tmp_path: Path, text: str, line: int, message: str):
    path = tmp_path / "my.properties"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_an_error_in_an_override_does_not_name_the_file(tmp_path: Path):
    path = tmp_path / "my.properties"
    path.write_text("num.partitions=1\n")
    with pytest.raises(ConfigError) as caught:
        load_config([path], ["num.partitions=0"])
    assert str(caught.value).startswith("num.partitions=0: must be at least 1")


def test_options_removed_in_kafka_4_warn(tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text(
        "broker.id=0\nlisteners=PLAINTEXT://:9092\nlog.dirs=/tmp/kafka-logs\nzookeeper.connect=localhost:2181\n"
        "zookeeper.connection.timeout.ms=18000\nbroker.id.generation.enable=true\ninter.broker.protocol.version=2.8\n"
    )
    config = load_config([path])
    assert config.unimplemented == (
        "broker.id.generation.enable",
        "inter.broker.protocol.version",
        "log.dirs",
        "zookeeper.connect",
        "zookeeper.connection.timeout.ms",
    )
    assert "option zookeeper.connect is from Kafka before 4.0 and is ignored" in config.warnings
    assert "option log.dirs is not implemented by this broker and is ignored" in config.warnings


@pytest.mark.parametrize(
    ("override", "instead"),
    [
        ("transaction.partition.verification.enable=false", "partitions are always verified"),
        (
            "transaction.abort.timed.out.transaction.cleanup.interval.ms=1",
            "transactions are aborted when they time out",
        ),
    ],
)
def test_an_option_without_effect_warns_unless_it_has_its_default(override: str, instead: str):
    name = override.partition("=")[0]
    assert options(override).warnings == [f"option {name} has no effect: {instead}"]
    assert options(f"{name}={spell(OPTIONS[name].default)}").warnings == []


def test_transaction_settings_come_from_the_options():
    assert load_config().transaction_settings() == TransactionSettings()
    chosen = options(
        "transaction.max.timeout.ms=1",
        "transactional.id.expiration.ms=2",
        "transaction.remove.expired.transaction.cleanup.interval.ms=3",
    )
    assert chosen.transaction_settings() == TransactionSettings(1, 2, 3)


def test_only_a_similar_name_is_suggested():
    assert refusal("zookeper.connect=x") == "unknown option zookeper.connect"
    assert refusal("parts.of.topic=3") == "unknown option parts.of.topic"


def test_no_option_of_kafka_4_counts_as_removed():
    assert not FORMER & (set(OPTIONS) | UNIMPLEMENTED)
    assert not [name for name in [*OPTIONS, *UNIMPLEMENTED] if name.startswith(FORMER_PREFIXES)]


def test_the_server_properties_that_kafka_ships_is_accepted(tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
        "log.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\nlog.retention.hours=168\n"
    )
    config = load_config([path])
    assert [address.endpoint for address in config.listen] == [Endpoint("", 9092)]
    assert config.advertised == {"PLAINTEXT": Endpoint("localhost", 9092)}
    assert "log.dirs" in config.unimplemented


def test_listeners_of_any_name_have_the_protocols_that_they_are_mapped_to():
    config = options(
        "listeners=inside://127.0.0.1:1, OUTSIDE://:2,SSL://[::1]:2",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,outside:sasl_ssl,SSL:SSL",
        "advertised.listeners=OUTSIDE://kafka.example:3",
    )
    assert config.listen == [
        NamedAddress("INSIDE", "PLAINTEXT", Endpoint("127.0.0.1", 1)),
        NamedAddress("OUTSIDE", "SASL_SSL", Endpoint("", 2)),
        NamedAddress("SSL", "SSL", Endpoint("::1", 2)),
    ]
    assert config.advertised == {"OUTSIDE": Endpoint("kafka.example", 3)}


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        ("PLAINTEXT://0.0.0.0:1", "neither encrypted nor authenticated"),
        ("SASL_PLAINTEXT://0.0.0.0:1", "not encrypted"),
        ("SSL://0.0.0.0:1", "not authenticated"),
    ],
)
def test_a_listener_that_others_reach_is_insecure_unless_it_encrypts_and_authenticates(listener: str, reason: str):
    assert reason in (why_insecure(options(f"listeners=SASL_SSL://127.0.0.1:2,{listener}")) or "")
    assert why_insecure(options(f"listeners={listener.replace('0.0.0.0', '127.0.0.1')},SASL_SSL://0.0.0.0:2")) is None


def test_tokens_without_a_signature_do_not_authenticate_a_listener():
    bearer = ["listeners=SASL_SSL://0.0.0.0:1", "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER"]
    keys = "sasl.oauthbearer.jwks.endpoint.url=file:///keys"
    assert "tokens without a signature" in (why_insecure(options(*bearer)) or "")
    assert "tokens" in (why_insecure(options(*bearer, f"listener.name.sasl_ssl.scram-sha-256.{keys}")) or "")
    assert why_insecure(options(*bearer, f"listener.name.sasl_ssl.oauthbearer.{keys}")) is None
    assert why_insecure(options(*bearer, "listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN")) is None


def test_a_login_module_without_a_mechanism_is_ignored_with_a_warning():
    config = load_config(
        overrides={f"{prefix}sasl.jaas.config": "x required;" for prefix in ("", "listener.name.plaintext.")}
    )
    assert [warning.partition(" is ignored: ")[0] for warning in config.warnings] == [
        "option sasl.jaas.config",
        "option listener.name.plaintext.sasl.jaas.config",
    ]


def test_client_certificates_authenticate_a_listener_unless_it_uses_sasl():
    required = ["listeners=SSL://0.0.0.0:1,SASL_SSL://0.0.0.0:2", "ssl.client.auth=required"]
    config = options(*required)
    assert why_insecure(config) is None
    assert [config.client_auth(address) for address in config.listen] == ["required", "none"]
    config = options(*required, "listener.name.sasl_ssl.ssl.client.auth=requested")
    assert [config.client_auth(address) for address in config.listen] == ["required", "requested"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_addresses_are_recognised(host: str):
    assert Endpoint(host, 1).is_loopback()


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.0.2.1", "127.0.0.1.invalid"])
def test_other_addresses_are_not_loopback(host: str):
    assert not Endpoint(host, 1).is_loopback()


def test_broker_id_is_used_if_node_id_is_not_set():
    assert options("broker.id=5").node_id == 5
    assert options("broker.id=5", "node.id=6").node_id == 6


def test_storage_and_groups_get_their_settings():
    config = load_config(
        overrides=["log.cleanup.policy=compact,delete", "log.retention.minutes=1", "group.max.size=3"],
        durability="process",
    )
    assert config.log_settings().cleanup_policy == "compact,delete"
    assert config.log_settings().retention_ms == 60_000
    assert config.log_settings().durability == "process"
    assert config.group_settings().group_max_size == 3
    assert config.group_settings().group_initial_rebalance_delay_ms == 0


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        (r"a=\ud83d\uDE00\ud83d", {"a": "\U0001f600\ud83d"}),
        ("a: 1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("  # comment\n! another\n\n a = b = c ", {"a": "b = c "}),
        ("a=1,\\\n   2,\\\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a\\ b\\=c = d", {"a b=c": "d"}),
        ("tab=\\t|\\n|\\u00e9|\\q", {"tab": "\t|\n|é|q"}),
        ("key\nempty=", {"key": "", "empty": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, pairs: dict[str, str]):
    assert parse_properties(text) == pairs


def test_formatted_properties_are_ascii_because_java_reads_latin_1():
    values = {"a": " leading", "b": "\\\t\n\r\f", "c": "b\u00e4r \U0001f43b", "d": "", "e": "x=y:#!"}
    text = format_properties(values)
    assert text.isascii()
    assert text.splitlines()[2] == r"c=b\u00e4r \ud83d\udc3b"
    assert parse_properties(text) == values


def test_a_malformed_unicode_escape_is_refused():
    with pytest.raises(ConfigError, match="malformed"):
        parse_properties("a=\\u12")


def test_loading_options_imports_neither_storage_nor_asyncio():
    code = (
        "import sys, broker.config.config as c; c.load_config(overrides=['num.partitions=2']);"
        "sys.exit(bool({'asyncio', 'difflib', 'broker.storage', 'broker.config.ignored_options'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
