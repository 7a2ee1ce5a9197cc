"""Protobuf: the registry has the descriptor of the file, the JSON is Protobuf's own (proto3 JSON)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from kgctl.client.schema_registry.errors import BadSchema, Mismatch, MissingExtra
from kgctl.client.schema_registry.framing import FIRST_MESSAGE, read_path
from kgctl.client.schema_registry.kinds import Format
from kgctl.client.schema_registry.registry import Registry, Schema, required

# Files that every schema may import, without a reference: they come with libraries.
_MODULES = {"google/": "google.", "confluent/": "confluent_kafka.schema_registry.confluent."}


def make(registry: Registry, schema: Schema, asked: int | str) -> Protobuf:
    pool = required("google.protobuf.descriptor_pool").DescriptorPool()
    file_name = f"kgctl-schema-{asked}.proto"
    try:
        _add(registry, pool, registry.by_id(asked, serialized=True), file_name, set())
        return Protobuf(pool, pool.FindFileByName(file_name))
    except (TypeError, KeyError) as error:
        raise BadSchema(f"schema {asked} is no valid Protobuf file: {error}") from None


def _add(registry: Registry, pool: Any, schema: Schema, name: str, added: set[str]) -> None:
    """Add a file to the pool, after those that it imports."""
    added.add(name)
    file = _file(schema, name)
    for one in schema.references:
        if one.name not in added and not one.name.startswith("google/protobuf/"):
            _add(registry, pool, registry.version(one.subject, one.version, serialized=True), one.name, added)
    for imported in file.dependency:
        if imported not in added:
            _add_known(pool, imported, added)
    pool.Add(file)


def _add_known(pool: Any, name: str, added: set[str]) -> None:
    added.add(name)
    for beginning, package in _MODULES.items():
        if name.startswith(beginning):
            try:
                module = required(
                    package + name.removeprefix(beginning).removesuffix(".proto").replace("/", ".") + "_pb2"
                )
            except MissingExtra:
                break
            file = required("google.protobuf.descriptor_pb2").FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            for imported in file.dependency:
                if imported not in added:
                    _add_known(pool, imported, added)
            pool.Add(file)
            return
    raise BadSchema(f"a Protobuf schema imports {name!r}, which it does not refer to")


def _file(schema: Schema, name: str) -> Any:
    file = required("google.protobuf.descriptor_pb2").FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError, required("google.protobuf.message").DecodeError):
        raise BadSchema(
            "the registry does not return Protobuf schemas as descriptors (format=serialized), which kgctl needs"
        ) from None
    file.name = name
    return file


class Protobuf:
    """`file` is the descriptor that has the messages."""

    kind = Format.PROTOBUF

    def __init__(self, pool: Any, file: Any) -> None:
        self._pool, self._file = pool, file
        self._classes: dict[tuple[int, ...], Any] = {}

    def decode(self, body: bytes, path: bytes | None) -> bytes:
        if path:
            indexes, _ = read_path(path)
        else:
            indexes, body = read_path(body)
        made = self._class(indexes)()
        try:
            made.ParseFromString(body)
        except required("google.protobuf.message").DecodeError as error:
            raise Mismatch(f"it is no {made.DESCRIPTOR.full_name}: {error}") from None
        shown = required("google.protobuf.json_format").MessageToDict(
            made,
            always_print_fields_with_no_presence=True,
            preserving_proto_field_name=True,
            descriptor_pool=self._pool,
        )
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()

    def encode(self, text: bytes) -> bytes:
        """A message of the first type in the file."""
        library = required("google.protobuf.json_format")
        made = self._class((0,))()
        try:
            library.Parse(text, made, descriptor_pool=self._pool)
        except library.ParseError as error:
            raise Mismatch(f"it is no {made.DESCRIPTOR.full_name}: {error}") from None
        return FIRST_MESSAGE + bytes(made.SerializeToString())

    def _class(self, path: Sequence[int]) -> Any:
        key = tuple(path)
        if key not in self._classes:
            # Descriptors keep messages by name; the file has their order.
            file = required("google.protobuf.descriptor_pb2").FileDescriptorProto()
            self._file.CopyToProto(file)
            names, messages = [file.package] if file.package else [], file.message_type
            for index in key:
                if index >= len(messages):
                    raise Mismatch(f"its Protobuf file has no message {list(key)}")
                names.append(messages[index].name)
                messages = messages[index].nested_type
            descriptor = self._pool.FindMessageTypeByName(".".join(names))
            self._classes[key] = required("google.protobuf.message_factory").GetMessageClass(descriptor)
        return self._classes[key]
