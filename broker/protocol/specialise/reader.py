"""Generate the source of a function that reads a message."""

from __future__ import annotations

import struct

from broker.protocol.specialise.generator import Generator
from broker.protocol.wire_types import ARRAY, BYTES, STRING, STRING_BYTES, Field, Scalar, Sequence, StructMeta, WireType


class ReaderSource(Generator):
    """Source of `function(data, p, entries)`: read the message at position p, with at most `entries` array entries in all."""

    def source(self, cls: StructMeta) -> str:
        self.message = cls.__name__
        self.line("size = len(data)")
        self.struct(cls, "m")
        self.flush()
        self.line("return m")
        return "def function(data, p, entries):\n left = entries\n" + "\n".join(self.lines)

    def struct(self, cls: StructMeta, target: str) -> None:
        self.line(f"{target} = new({self.constant('C', cls)})")
        plain, tagged = self.fields(cls)
        for field in cls.FIELDS:
            if field not in plain:
                default = "[]" if isinstance(field.default, list) else self.constant("D", field.absent())
                self.line(f"{target}.{field.name} = {default}")
        for field in plain:
            self.value(
                field.type, f"{target}.{field.name}", field.is_nullable(self.version), self.flexible and field.flexible
            )
        if self.flexible:
            self.tags(tagged, target)

    def tags(self, tagged: list[Field], target: str) -> None:
        count = self.length("B")
        if not tagged:
            self.line(f"if {count}: p = skip_tagged_fields(data, p, {count})")
            return
        tag, end, keyword = self.fresh("tag"), self.fresh("end"), "if"
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag}, p = read_uvarint(data, p)")
        for field in tagged:
            self.line(f"{keyword} {tag} == {field.tag}:")
            self.depth += 1
            self.line(f"{end}, p = read_uvarint(data, p)")
            self.line(f"{end} += p")
            if field.is_nullable(self.version) and isinstance(field.type, StructMeta):
                self.nullable_struct(field.type, f"{target}.{field.name}", null=0)
            else:
                self.value(field.type, f"{target}.{field.name}", field.is_nullable(self.version), True)
            self.flush()
            self.line(f"if p != {end}: fail('tagged field {field.name} has a wrong length')")
            self.depth -= 1
            keyword = "elif"
        self.line("else: p = skip_tagged_value(data, p)")
        self.depth -= 1

    def value(self, wire_type: WireType, target: str, nullable: bool, compact: bool) -> None:
        if isinstance(wire_type, Scalar):
            self.run.append((wire_type.code, target))
        elif isinstance(wire_type, Sequence):
            self.sequence(wire_type, target, nullable, compact)
        elif isinstance(wire_type, ARRAY):
            self.array(wire_type.element, target, nullable, compact)
        elif nullable:
            self.nullable_struct(wire_type, target)
        else:
            name = self.fresh("s")
            self.struct(wire_type, name)
            self.line(f"{target} = {name}")

    def nullable_struct(self, cls: StructMeta, target: str, null: int = -1) -> None:
        marker, name = self.fresh("n"), self.fresh("s")
        self.run.append(("b", marker))
        self.flush()
        self.line(f"if {marker} == {null}: {target} = None")
        self.line(f"elif {marker} != 1: fail('a nullable struct starts with neither 1 nor {null}')")
        self.line("else:")
        self.depth += 1
        self.struct(cls, name)
        self.flush()
        self.line(f"{target} = {name}")
        self.depth -= 1

    def length(self, prefix: str) -> str:
        """Read a length prefix in one struct call with the run before it; `B` stands for a varint."""
        name = self.fresh("n")
        self.run.append((prefix, name))
        self.flush()
        if prefix == "B":
            self.line(f"if {name} > 127: {name}, p = read_uvarint(data, p - 1)")
        return name

    def counted(self, prefix: str, target: str, nullable: bool, compact: bool) -> str:
        """Read a length and check it for null. The code that follows goes under the `else` that this opens."""
        name = self.length("B" if compact else prefix)
        if compact:
            self.line(f"{name} -= 1")
        if nullable:
            self.line(f"if {name} == -1: {target} = None")
            self.line(f"elif {name} < 0: fail('negative length of {self.label(target)}')")
        else:
            self.line(f"if {name} < 0: fail('null or negative length of {self.label(target)}')")
        self.line("else:")
        self.depth += 1
        return name

    def sequence(self, wire_type: Sequence, target: str, nullable: bool, compact: bool) -> None:
        length = self.counted(wire_type.prefix, target, nullable, compact)
        if compact and wire_type is STRING:
            # Kafka refuses longer strings too; the non-compact form cannot express them.
            self.line(f"if {length} > {STRING_BYTES}: fail('{self.label(target)} is too long')")
        end = self.fresh("e")
        self.line(f"{end} = p + {length}")
        self.line(f"if {end} > size: fail('{self.label(target)} is cut short')")
        if wire_type is STRING:
            self.line(f"{target} = data[p:{end}].decode()")
        elif wire_type is BYTES:
            self.line(f"{target} = data[p:{end}]")
        else:
            self.line(f"{target} = memoryview(data)[p:{end}]")
        self.line(f"p = {end}")
        self.depth -= 1

    def array(self, element: WireType, target: str, nullable: bool, compact: bool) -> None:
        count = self.counted("i", target, nullable, compact)
        minimum = self.minimum(element)
        needed = count if minimum == 1 else f"{count} * {minimum}"
        self.line(f"if {needed} > size - p: fail('{self.label(target)} has more elements than bytes')")
        self.line(f"left -= {count}")
        self.line(f"if left < 0: fail(f'{self.message} has more than {{entries}} entries')")
        if isinstance(element, Scalar):
            self.scalars(element, target, count)
        else:
            items, add = self.fresh("a"), self.fresh("add")
            self.line(f"{target} = {items} = []")
            self.line(f"{add} = {items}.append")
            self.line(f"for _ in range({count}):")
            self.depth += 1
            item = self.element(target)
            if isinstance(element, StructMeta):
                self.struct(element, item)
            else:
                self.value(element, item, False, compact)
            self.flush()
            self.line(f"{add}({item})")
            self.depth -= 1
        self.depth -= 1

    def scalars(self, element: Scalar, target: str, count: str) -> None:
        if element.size == 16:
            self.line(f"{target} = [data[i:i + 16] for i in range(p, p + 16 * {count}, 16)]")
        else:
            self.line(f"{target} = list(unpack_from(f'>{{{count}}}{element.code}', data, p))")
        self.line(f"p += {count} * {element.size}" if element.size > 1 else f"p += {count}")

    def flush(self) -> None:
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self.run))
        targets = ", ".join(target for _, target in self.run)
        if layout.format == ">B":
            self.line(f"{targets} = data[p]")
        else:
            self.line(f"{targets}, = {self.constant('U', layout.unpack_from)}(data, p)")
        self.line(f"p += {layout.size}")
        self.run.clear()
