"""Records with schemas of a registry: bytes made by fastavro, Protobuf and json become JSON, and JSON becomes those bytes."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.type import money_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.record_batch import Record
from broker.security.secret import Secret
from kgctl.client.schema_registry.decoder import Decoder, Undecodable
from kgctl.client.schema_registry.encoder import Encoder
from kgctl.client.schema_registry.errors import BadRegistry, BadSchema, Mismatch, RegistryFailed, SchemaNotFound
from kgctl.client.schema_registry.framing import Framed, read_path, split
from kgctl.client.schema_registry.kinds import Format
from kgctl.client.schema_registry.registry import Registry
from kgctl.client.schema_registry.settings import RegistrySettings
from kgctl.model.json_text import JsonText
from kgctl.model.topic_partition import TopicPartition
from tests.harness.schema_registry import SchemaRegistry, schema_registry

PARTITION = TopicPartition("orders", 2)
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "sum", "type": ["null", "double", {"type": "fixed", "name": "Digest", "size": 2}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
    ],
}
PLAIN = {k: v for k, v in ORDER.items() if k != "fields"} | {
    "fields": [
        {**one, "type": "bytes" if one["name"] == "price" else "long"} if one["name"] in ("price", "placed") else one
        for one in ORDER["fields"]
    ]
}
DATUM: dict[str, Any] = {
    "id": 2**60,
    "note": "é",
    "price": b"\x00\xff",
    "placed": 1_700_000_000_000,
    "state": "PAID",
    "sum": ("shop.Digest", b"ab"),
    "tags": ["x"],
    "counts": {"a": -1},
}
JSON = {
    "id": 2**60,
    "note": {"string": "é"},
    "price": "\x00\xff",
    "placed": 1_700_000_000_000,
    "state": "PAID",
    "sum": {"shop.Digest": "ab"},
    "tags": ["x"],
    "counts": {"a": -1},
}


@pytest.fixture(scope="module")
def double() -> Iterator[SchemaRegistry]:
    with schema_registry() as found:
        yield found


@pytest.fixture
def registry(double: SchemaRegistry) -> Iterator[Registry]:
    found = Registry(RegistrySettings(double.url))
    yield found
    found.close()


def framed(number: int, body: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", number) + body


def avro(schema: Any, datum: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return out.getvalue()


def decode(registry: Registry, value: bytes | None, wanted: Format = Format.AUTO, **more: Any) -> bytes | None:
    record = Record(7, 0, None, value, **more)
    return Decoder(registry, key=Format.TEXT, value=wanted).decode(PARTITION, record).value


# --- Avro ---


def test_avro_is_shown_in_the_json_encoding_of_its_specification(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("a-value", "AVRO", ORDER)
    shown = decode(registry, framed(number, avro(PLAIN, DATUM)))
    assert isinstance(shown, JsonText)
    assert json.loads(shown) == JSON
    assert Encoder(registry, "a-value", Format.AVRO).encode(shown) == framed(number, avro(PLAIN, DATUM))


def test_avro_input_may_leave_out_defaults_and_the_name_of_the_only_branch(
    double: SchemaRegistry, registry: Registry
) -> None:
    number = double.register("b-value", "AVRO", ORDER)
    encoder = Encoder(registry, number, Format.AUTO)
    without_note = {name: value for name, value in JSON.items() if name != "note"}
    assert encoder.encode(json.dumps(without_note).encode()) == framed(number, avro(PLAIN, DATUM | {"note": None}))
    plain_note = json.dumps(JSON | {"note": "é"}).encode()
    assert encoder.encode(plain_note) == framed(number, avro(PLAIN, DATUM))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "1"}, "$.id is no long"),
        ({"id": 2**63}, "$.id is no long"),
        ({"id": True}, "$.id is no long"),
        ({"sum": 1.5}, "$.sum names no branch of its union: write {TYPE: VALUE} with one of null, double, shop.Digest"),
        ({"sum": {"shop.Digest": "abc"}}, "$.sum.shop.Digest has 3 bytes instead of 2"),
        ({"price": "Ā"}, "$.price has characters above U+00FF, which no byte has"),
        ({"state": "LOST"}, "$.state is no shop.State symbol"),
        ({"tags": ["x", 1]}, "$.tags[1] is no string"),
        ({"counts": {"a": 1.5}}, "$.counts.a is no int"),
        ({"extra": 1}, "$.extra: shop.Order has no such field"),
    ],
)
def test_avro_input_that_does_not_fit_says_where(
    double: SchemaRegistry, registry: Registry, change: dict[str, Any], sentence: str
) -> None:
    encoder = Encoder(registry, double.register("c-value", "AVRO", ORDER), Format.AUTO)
    with pytest.raises(Mismatch) as error:
        encoder.encode(json.dumps(JSON | change).encode())
    assert str(error.value) == sentence


def test_a_missing_avro_field_and_what_is_not_json_are_errors(double: SchemaRegistry, registry: Registry) -> None:
    encoder = Encoder(registry, double.register("c-value", "AVRO", ORDER), Format.AUTO)
    with pytest.raises(Mismatch, match=r"^\$\.id is missing and has no default$"):
        encoder.encode(b"{}")
    with pytest.raises(Mismatch, match=r"^\$ is no record shop\.Order: write a JSON object$"):
        encoder.encode(b"[]")
    with pytest.raises(Mismatch, match=r"^it is not JSON: "):
        encoder.encode(b"{")


def test_avro_numbers_that_json_does_not_have_are_texts(double: SchemaRegistry, registry: Registry) -> None:
    schema = {"type": "array", "items": "double"}
    number = double.register("numbers", "AVRO", schema)
    body = avro(schema, [float("inf"), float("-inf"), 1.5])
    assert decode(registry, framed(number, body)) == b'["Infinity","-Infinity",1.5]'
    encoder = Encoder(registry, number, Format.AUTO)
    assert encoder.encode(b'["Infinity","-Infinity",1.5]') == framed(number, body)
    assert decode(registry, encoder.encode(b'["NaN"]')) == b'["NaN"]'


def test_avro_schemas_refer_to_others_also_from_a_union_at_the_top(double: SchemaRegistry, registry: Registry) -> None:
    item = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "n", "type": "int"}]}
    cart = {
        "type": "record",
        "name": "Cart",
        "fields": [{"name": "items", "type": {"type": "array", "items": "shop.Item"}}],
    }
    double.register("item", "AVRO", item)
    double.register("cart", "AVRO", cart, [("shop.Item", "item", 1)])
    union = ["shop.Item", "Cart"]
    references = [("Cart", "cart", 1), ("shop.Item", "item", 1)]
    number = double.register("events-value", "AVRO", union, references)
    body = avro([item, cart], ("Cart", {"items": [{"n": 1}, {"n": 2}]}))
    shown = decode(registry, framed(number, body))
    assert shown == b'{"Cart":{"items":[{"n":1},{"n":2}]}}'
    assert Encoder(registry, number, Format.AUTO).encode(shown) == framed(number, body)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)
ANYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Node",
    "fields": [
        {
            "name": "v",
            "type": ["null", "boolean", "long", "double", "string", {"type": "array", "items": "Node"}],
        }
    ],
}


def node(value: Any) -> dict[str, Any]:
    return {"v": [node(one) for one in value] if isinstance(value, list) else value}


@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_avro_to_json_and_back_gives_the_same_bytes(value: Any) -> None:
    from kgctl.client.schema_registry.avro import make
    from kgctl.client.schema_registry.registry import Schema

    codec = make(None, Schema("AVRO", json.dumps(ANYTHING), ()), 1)  # type: ignore[arg-type]  # no references to ask for
    body = avro(ANYTHING, node(value))
    assert codec.encode(codec.decode(body, None)) == body


# --- Protobuf ---


def proto_file() -> FileDescriptorProto:
    """message Other {string t = 1;} message Order {int64 id = 1; repeated string tags = 2; Line line = 3; ...}"""
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/type/money.proto", "common/item.proto"])
    order = file.message_type.add(name="Order")
    optional, repeated = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    order.field.add(name="order_id", number=1, type=FieldDescriptorProto.TYPE_INT64, label=optional)
    order.field.add(name="tags", number=2, type=FieldDescriptorProto.TYPE_STRING, label=repeated)
    message = FieldDescriptorProto.TYPE_MESSAGE
    order.field.add(name="placed", number=3, type=message, label=optional, type_name=".google.protobuf.Timestamp")
    order.field.add(name="price", number=4, type=message, label=optional, type_name=".google.type.Money")
    order.field.add(name="item", number=5, type=message, label=optional, type_name=".common.Item")
    nested = order.nested_type.add(name="Line")
    nested.field.add(name="n", number=1, type=FieldDescriptorProto.TYPE_INT32, label=optional)
    file.message_type.add(name="Cancelled").field.add(
        name="why", number=1, type=FieldDescriptorProto.TYPE_STRING, label=optional
    )
    return file


def item_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="common/item.proto", package="common", syntax="proto3")
    file.message_type.add(name="Item").field.add(
        name="sku", number=1, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    return file


@pytest.fixture
def protobuf(double: SchemaRegistry) -> int:
    double.register("item-proto", "PROTOBUF", item_file())
    return double.register("p-value", "PROTOBUF", proto_file(), [("common/item.proto", "item-proto", 1)])


def message(name: str) -> Any:
    pool = DescriptorPool()
    for module in (timestamp_pb2, money_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(item_file())
    pool.Add(proto_file())
    return GetMessageClass(pool.FindMessageTypeByName(name))()


def order_message() -> Any:
    made = message("shop.Order")
    made.order_id = 2**60
    made.tags.append("é")
    made.placed.FromSeconds(1_700_000_000)
    made.price.units = 3
    made.item.sku = "s"
    return made


ORDER_JSON = {
    "order_id": str(2**60),
    "tags": ["é"],
    "placed": "2023-11-14T22:13:20Z",
    "price": {"currency_code": "", "units": "3", "nanos": 0},
    "item": {"sku": "s"},
}


def test_protobuf_is_shown_as_its_json(registry: Registry, protobuf: int) -> None:
    value = framed(protobuf, b"\x00" + order_message().SerializeToString())
    shown = decode(registry, value)
    assert shown is not None
    assert json.loads(shown) == ORDER_JSON
    assert b"\n" not in shown
    assert Encoder(registry, "p-value", Format.PROTOBUF).encode(shown) == value


@pytest.mark.parametrize(
    ("path", "name", "field", "shown"),
    [(b"\x02\x02", "shop.Cancelled", "why", b'{"why":"w"}'), (b"\x04\x00\x00", "shop.Order.Line", "n", b'{"n":5}')],
)
def test_the_path_names_the_message_of_the_file(
    registry: Registry, protobuf: int, path: bytes, name: str, field: str, shown: bytes
) -> None:
    made = message(name)
    setattr(made, field, "w" if field == "why" else 5)
    assert decode(registry, framed(protobuf, path + made.SerializeToString())) == shown


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x00\xff\xff", "it is no shop.Order: "),
        (b"\x02\x08", "its Protobuf file has no message [4]"),
        (b"", "it has no valid path to a Protobuf message"),
        (b"\x02\x01", "it has no valid path to a Protobuf message"),
        (b"\xff" * 11, "it has no valid path to a Protobuf message"),
    ],
)
def test_bytes_that_are_no_protobuf_are_undecodable(
    registry: Registry, protobuf: int, body: bytes, reason: str
) -> None:
    with pytest.raises(Undecodable) as error:
        decode(registry, framed(protobuf, body))
    assert f"orders-2, offset 7: cannot decode the value: {reason}" in str(error.value)
    assert f"(schema {protobuf})" in str(error.value)


def test_protobuf_input_that_does_not_fit_is_an_error(registry: Registry, protobuf: int) -> None:
    with pytest.raises(Mismatch, match=r"it is no shop\.Order: .*nothing"):
        Encoder(registry, protobuf, Format.AUTO).encode(b'{"nothing": 1}')


def test_an_import_that_nobody_has_is_an_error(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("alone", "PROTOBUF", proto_file())
    with pytest.raises(Undecodable, match=r"imports 'common/item\.proto', which it does not refer to"):
        decode(registry, framed(number, b"\x00"))


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=4), st.binary(max_size=4))
def test_paths_are_read_as_confluents_client_writes_them(path: list[int], rest: bytes) -> None:
    from confluent_kafka.schema_registry.common.serde import SchemaId

    written = SchemaId("PROTOBUF", 5, message_indexes=path).id_to_bytes()
    found = split(written + rest, (), "")
    assert found == Framed(5, written[5:] + rest)
    assert read_path(found.body) == (tuple(path), rest)


# --- JSON Schema ---


def test_json_is_shown_as_it_is_in_one_line(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("j-value", "JSON", {"type": "object"})
    assert decode(registry, framed(number, b'{"price": 1.10, "n":1e400}')) == b'{"price": 1.10, "n":1e400}'
    assert decode(registry, framed(number, b'{\n "a": "\xc3\xa9"\n}')) == '{"a":"é"}'.encode()
    with pytest.raises(Undecodable, match="it is not JSON"):
        decode(registry, framed(number, b"{"))


def test_json_input_is_checked_against_the_schema_and_its_references(
    double: SchemaRegistry, registry: Registry
) -> None:
    double.register("sku", "JSON", {"type": "string", "maxLength": 3})
    schema = {"type": "object", "properties": {"sku": {"$ref": "sku.json"}}, "required": ["sku"]}
    number = double.register("k-value", "JSON", schema, [("sku.json", "sku", 1)])
    encoder = Encoder(registry, "k-value", Format.JSON_SCHEMA)
    assert encoder.encode(b'{"sku": "abc"}') == framed(number, b'{"sku": "abc"}')
    with pytest.raises(Mismatch, match=r"^\$\.sku: 'abcd' is too long$"):
        encoder.encode(b'{"sku": "abcd"}')
    with pytest.raises(Mismatch, match=r"^\$: 'sku' is a required property$"):
        encoder.encode(b"{}")


# --- what names a schema ---


def test_bytes_without_a_schema_and_nulls_stay_as_they_are(registry: Registry) -> None:
    for value in (None, b"", b"text", b"\x00\x00"):
        assert decode(registry, value) is value
    assert decode(registry, b"\x00\x00\x00\x00\x63\x00", Format.TEXT) == b"\x00\x00\x00\x00\x63\x00"
    with pytest.raises(
        Undecodable, match="orders-2, offset 7: cannot decode the value: it names no schema, so it is no Avro"
    ):
        decode(registry, b"text", Format.AVRO)


def test_a_guid_in_a_header_or_in_front_names_the_schema(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("guid-value", "AVRO", "string")
    guid = b"\x01" + bytes.fromhex(double.guid(number).replace("-", ""))
    body = avro("string", "x")
    assert decode(registry, body, headers=(("__value_schema_id", guid),)) == b'"x"'
    assert decode(registry, guid + body) == b'"x"'


def test_each_schema_is_asked_for_once_also_if_it_does_not_exist(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("once", "AVRO", "string")
    decoder = Decoder(registry, key=Format.AUTO, value=Format.AUTO)
    data = framed(number, avro("string", "x"))
    before = len(double.asked)
    for _ in range(3):
        decoder.decode(PARTITION, Record(0, 0, data, data))
        with pytest.raises(Undecodable, match=r"the key: schema registry .* has no schema 7$"):
            decoder.decode(PARTITION, Record(0, 0, framed(7, b""), None))
    assert double.asked[before:] == [f"/schemas/ids/{number}", "/schemas/ids/7"]


def test_a_schema_of_another_kind_is_an_error(double: SchemaRegistry, registry: Registry) -> None:
    number = double.register("kind-value", "AVRO", "string")
    with pytest.raises(Undecodable, match=f"schema {number} is Avro, not Protobuf"):
        decode(registry, framed(number, b""), Format.PROTOBUF)
    with pytest.raises(BadSchema, match=f"the newest schema of 'kind-value' \\(id {number}\\) is Avro, not JSON"):
        Encoder(registry, "kind-value", Format.JSON_SCHEMA)


@pytest.mark.parametrize("body", [b"", b"\x04a", b"\x02ab", b"\x02\xff"])
def test_bytes_that_do_not_fit_an_avro_schema_are_undecodable(
    double: SchemaRegistry, registry: Registry, body: bytes
) -> None:
    number = double.register("bad-value", "AVRO", "string")
    with pytest.raises(Undecodable, match="it does not fit the schema: "):
        decode(registry, framed(number, body))


# --- the registry ---


def test_a_registry_that_fails_is_no_undecodable_record(double: SchemaRegistry, registry: Registry) -> None:
    with pytest.raises(SchemaNotFound, match="has no subject 'nothing'"):
        Encoder(registry, "nothing", Format.AUTO)
    double.fails_with = 500
    try:
        with pytest.raises(RegistryFailed, match="Error in the backend data store"):
            decode(registry, framed(99_999, b""))
    finally:
        double.fails_with = None


def test_a_registry_that_is_not_there_is_unreachable() -> None:
    with schema_registry() as gone:
        url = gone.url
    registry = Registry(RegistrySettings(url))
    with pytest.raises(RegistryFailed, match=f"cannot ask schema registry {url} for schema 1: "):
        registry.by_id(1)
    registry.close()


def test_a_user_is_sent_and_a_wrong_one_is_explained(double: SchemaRegistry) -> None:
    number = double.register("user", "AVRO", "string")
    double.user_info = "alice:s:3"
    try:
        registry = Registry(RegistrySettings(double.url, user_info=Secret("alice:s:3")))
        assert registry.by_id(number).text == '"string"'
        registry.close()
        other = Registry(RegistrySettings(double.url))
        with pytest.raises(RegistryFailed, match=r"refuses access \(401\): Unauthorized; set schema\.registry\.basic"):
            other.by_id(number)
        other.close()
    finally:
        double.user_info = None


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("localhost:8081", "'localhost:8081' is not the URL of a schema registry: write http://HOST:PORT"),
        ("http://a:1,ftp://b", "'ftp://b' is not the URL"),
        ("http://me:secret@h", "the URL of the schema registry has a user: set schema.registry.basic.auth.user.info"),
    ],
)
def test_a_url_that_cannot_be_used_is_an_error_without_its_password(url: str, sentence: str) -> None:
    with pytest.raises(BadRegistry) as error:
        RegistrySettings(url)
    assert sentence in str(error.value)
    assert "secret" not in str(error.value)


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(BadRegistry, match="No such file"):
        Registry(RegistrySettings("https://127.0.0.1:1", ca_location="/nowhere.pem"))
