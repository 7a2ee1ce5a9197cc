"""`kgctl consume` and `kgctl produce` with a schema registry, on a running cluster."""

from __future__ import annotations

import io
import json
import ssl
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer

from tests.harness.certificates import Authority
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl
from tests.harness.schema_registry import SchemaRegistry, schema_registry
from tests.harness.streaming import records_of

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"]}],
}
ALL = ("--from-beginning", "--until-end")


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as found:
        yield found


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("typed")
    assert kgctl("topics", "create", name).exit_code == 0
    return name


def order(number: int, datum: dict[str, Any]) -> bytes:
    out = io.BytesIO(b"\x00" + struct.pack(">I", number))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), datum)
    return out.getvalue()


def write(kgctl: Kgctl, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": kgctl.bootstrap})
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def test_values_are_lines_of_json_and_other_bytes_stay(kgctl: Kgctl, topic: str, registry: SchemaRegistry) -> None:
    number = registry.register(f"{topic}-value", "AVRO", ORDER)
    write(kgctl, topic, (b"k", order(number, {"id": 1, "note": "é"})), (None, b"text"), (b"k", None))
    shown = kgctl("consume", topic, *ALL, "--schema-registry", registry.url, "--print-key")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout == 'k\t{"id":1,"note":{"string":"é"}}\nnull\ttext\nk\tnull\n'


def test_json_lines_have_decoded_keys_and_values_as_json(kgctl: Kgctl, topic: str, registry: SchemaRegistry) -> None:
    number = registry.register("any", "AVRO", ORDER)
    text = registry.register("text", "JSON", {"type": "object"})
    key = b"\x00" + struct.pack(">I", text) + b'{"price": 1.10}'
    write(kgctl, topic, (key, order(number, {"id": 1, "note": None})))
    shown = kgctl("consume", topic, *ALL, "--schema-registry", registry.url, "--json")
    assert '"key":{"price": 1.10},"value":{"id":1,"note":null},"headers":[]' in shown.stdout
    assert json.loads(shown.stdout)["value"] == {"id": 1, "note": None}


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        ((), 1, ["1"]),
        (("--on-undecodable", "skip"), 0, ["1", "3"]),
        (("--on-undecodable", "raw"), 0, ["1", "raw", "3"]),
        (("--on-undecodable", "skip", "--max-messages", "2"), 0, ["1", "3"]),
    ],
)
def test_a_record_that_cannot_be_decoded_ends_the_command_or_not(
    kgctl: Kgctl, topic: str, registry: SchemaRegistry, words: tuple[str, ...], code: int, printed: list[str]
) -> None:
    number = registry.register("n", "AVRO", ORDER)
    good = [order(number, {"id": n, "note": None}) for n in (1, 3)]
    write(kgctl, topic, (None, good[0]), (None, order(number, {"id": 2, "note": None}) + b"?"), (None, good[1]))
    shown = kgctl("consume", topic, *ALL, "--schema-registry", registry.url, *words, "--json")
    assert shown.exit_code == code
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [str(row["value"]["id"]) if isinstance(row["value"], dict) else "raw" for row in rows] == printed
    sentence = f"{topic}-0, offset 1: cannot decode the value: it does not fit the schema: 1 bytes are left over"
    assert sentence in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_a_group_stops_before_a_record_that_cannot_be_decoded(
    kgctl: Kgctl, topic: str, registry: SchemaRegistry, delivery: str
) -> None:
    number = registry.register("n", "AVRO", ORDER)
    group, good = fresh("g"), order(number, {"id": 1, "note": None})
    write(kgctl, topic, (None, good), (None, good + b"?"), (None, good))
    words = ("consume", topic, "--group", group, *ALL, "--schema-registry", registry.url, "--delivery", delivery)
    for printed in (1, 0):
        stopped = kgctl(*words)
        assert (stopped.exit_code, len(stopped.stdout.splitlines())) == (1, printed)
        (row,) = kgctl.rows("groups", "describe", group, "--offsets")
        assert row["current_offset"] == 1
    assert len(kgctl(*words, "--on-undecodable", "skip").stdout.splitlines()) == 1


def test_lines_are_encoded_with_the_newest_schema_of_the_subject(
    kgctl: Kgctl, topic: str, registry: SchemaRegistry
) -> None:
    registry.register(f"{topic}-value", "AVRO", "string")
    number = registry.register(f"{topic}-value", "AVRO", ORDER)
    lines = '{"id": 1, "note": {"string": "é"}}\n{"id": 2, "note": "x"}\n'
    done = kgctl("produce", topic, "--schema-registry", registry.url, text=lines)
    assert done.exit_code == 0, done.output
    values = [message.value() for message in records_of(str(kgctl.bootstrap), topic, 0, 2)]
    assert values == [order(number, {"id": 1, "note": "é"}), order(number, {"id": 2, "note": "x"})]


def test_what_consume_prints_is_written_again_with_the_same_bytes(
    kgctl: Kgctl, topic: str, registry: SchemaRegistry
) -> None:
    number = registry.register("orders", "AVRO", ORDER)
    text = registry.register(f"{topic}-key", "AVRO", "string")
    key = b"\x00" + struct.pack(">I", text) + b"\x02k"
    records = [(key, order(number, {"id": 1, "note": "x"})), (key, None), (None, b"\xff\x00")]
    write(kgctl, topic, *records)
    shown = kgctl("consume", topic, *ALL, "--schema-registry", registry.url, "--json")
    copy = fresh("copy")
    words = ("--value-schema", number, "--key-schema", f"{topic}-key", "--value-format", "avro")
    done = kgctl("produce", copy, "--json", "--schema-registry", registry.url, *words, text=shown.stdout)
    assert done.exit_code == 0, done.output
    assert [(one.key(), one.value()) for one in records_of(str(kgctl.bootstrap), copy, 0, 3)] == records


def test_a_line_that_does_not_fit_the_schema_is_a_bad_line(kgctl: Kgctl, topic: str, registry: SchemaRegistry) -> None:
    number = registry.register(f"{topic}-value", "AVRO", ORDER)
    lines = '{"id": 1, "note": null}\n{"id": "2", "note": null}\n'
    done = kgctl("produce", topic, "--schema-registry", registry.url, text=lines)
    assert done.exit_code == 1
    assert f"line 2: cannot encode the value with schema {number}: $.id is no int" in done.stderr
    assert "1 record" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 5, "has no subject 'missing-value'"),
        (("--value-schema", 7), 5, "has no schema 7"),
        (("--value-schema", "kind", "--value-format", "protobuf"), 1, "is Avro, not Protobuf"),
    ],
)
def test_a_schema_that_cannot_be_used_ends_the_command_before_a_topic_is_created(
    kgctl: Kgctl, registry: SchemaRegistry, words: tuple[object, ...], code: int, sentence: str
) -> None:
    registry.register("kind", "AVRO", ORDER)
    done = kgctl("produce", "missing", "--schema-registry", registry.url, *words, text="{}\n")
    assert (done.exit_code, sentence in done.stderr) == (code, True), done.output
    assert "missing" not in {row["topic"] for row in kgctl.rows("topics", "list")}


def test_a_registry_that_is_gone_ends_the_command_whatever_the_policy_is(kgctl: Kgctl, topic: str) -> None:
    with schema_registry() as gone:
        url = gone.url
    write(kgctl, topic, (None, order(1, {"id": 1, "note": None})))
    shown = kgctl("consume", topic, *ALL, "--schema-registry", url, "--on-undecodable", "skip")
    assert (shown.exit_code, shown.stdout) == (7, "")
    assert f"cannot ask schema registry {url} for schema 1" in shown.stderr


def test_a_properties_file_names_the_registry_its_user_and_its_certificates(
    kgctl: Kgctl, topic: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "ca")
    server, client = authority.server(), authority.client("alice", password="key-secret")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    with schema_registry(context) as secured:
        secured.user_info = "alice:s3cret"
        number = secured.register("s", "AVRO", ORDER)
        write(kgctl, topic, (None, order(number, {"id": 1, "note": None})))
        file = tmp_path / "client.properties"
        file.write_text(
            f"bootstrap.servers={kgctl.bootstrap}\nschema.registry.url={secured.url}\n"
            f"basic.auth.user.info=alice:s3cret\nschema.registry.ssl.ca.location={authority.ca_file}\n"
            f"schema.registry.ssl.certificate.location={client.certificate}\n"
            f"schema.registry.ssl.key.location={client.key}\nschema.registry.ssl.key.password=key-secret\n"
        )
        words = ("consume", topic, *ALL, "--command-config", file, "--value-format", "avro")
        shown = Kgctl()(*words)
        assert (shown.exit_code, shown.stdout, shown.stderr) == (0, '{"id":1,"note":null}\n', "")
        # Another registry gets neither the user nor the certificate, and is not trusted because of the authority.
        other = secured.url.replace("127.0.0.1", "localhost")
        refused = Kgctl()(*words, "--schema-registry", other)
        assert refused.exit_code == 7
        assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr


@pytest.mark.parametrize(
    ("setting", "secret"),
    [("basic.auth.user.info", "alice:s3cret"), ("bearer.auth.token", "t0ken")],
)
def test_a_context_names_the_registry_and_a_secret(
    kgctl: Kgctl, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, secret: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with schema_registry() as secured:
        secured.user_info, secured.token = (secret, None) if ":" in secret else (None, secret)
        number = secured.register("s", "AVRO", ORDER)
        write(kgctl, topic, (None, order(number, {"id": 1, "note": None})))
        file = tmp_path / "kgctl" / "config.toml"
        file.parent.mkdir()
        file.write_text(
            f'[contexts.own]\nbootstrap.servers = "{kgctl.bootstrap}"\nschema.registry.url = "{secured.url}"\n'
            f'schema.registry.{setting} = {{ env = "KGCTL_TEST_SECRET" }}\n'
        )
        words = ("consume", topic, *ALL, "--context", "own", "--value-format", "avro")
        monkeypatch.setenv("KGCTL_TEST_SECRET", secret)
        shown = Kgctl()(*words)
        assert (shown.exit_code, shown.stdout, shown.stderr) == (0, '{"id":1,"note":null}\n', "")
        monkeypatch.setenv("KGCTL_TEST_SECRET", secret[:-1])
        refused = Kgctl()(*words)
        assert refused.exit_code == 7
        assert f"refuses access (401): Unauthorized; check schema.registry.{setting}" in refused.stderr
        assert secret[:-1] not in refused.output
        monkeypatch.delenv("KGCTL_TEST_SECRET")
        missing = Kgctl()(*words)
        assert f"schema.registry.{setting}: the environment variable KGCTL_TEST_SECRET is not set" in missing.stderr


def test_without_the_libraries_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    for words in (("consume", "t"), ("produce", "t")):
        refused = Kgctl("127.0.0.1:1")(*words, "--schema-registry", "http://127.0.0.1:1", text="")
        assert refused.exit_code == 2
        assert "need pip install 'kgctl[schema-registry]'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on-undecodable", "skip"), "needs --schema-registry or --value-format"),
        (("--value-format", "avro"), "no schema registry: give --schema-registry URL"),
        (("--schema-registry", "localhost:8081"), "'localhost:8081' is not the URL of a schema registry"),
        (("--schema-registry", "http://u:p@h"), "the URL of the schema registry has a user"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(words: tuple[str, ...], sentence: str) -> None:
    refused = Kgctl("127.0.0.1:1")("consume", "t", *words)
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.replace("│", " ").split())
