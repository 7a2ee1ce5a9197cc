"""Generate the source of a function that writes a message."""

from __future__ import annotations

import struct

from broker.protocol.specialise.generator import Generator
from broker.protocol.varints import uvarint
from broker.protocol.wire_types import (
    ARRAY,
    RECORDS,
    STRING,
    STRING_BYTES,
    Field,
    Scalar,
    Sequence,
    StructMeta,
    WireType,
)

# Texts for people, which may quote a long name: an answer with a part of the text is better than none.
CUT = ("error_message",)


class WriterSource(Generator):
    """Source of `function(m)`: return bytes, or a list of parts if the message has records."""

    def __init__(self, version: int, flexible_since: int) -> None:
        super().__init__(version, flexible_since)
        self.add = "add"
        self.has_records = False

    def source(self, cls: StructMeta) -> str:
        self.struct(cls, "m")
        self.flush()
        if self.has_records:
            self.line("if out: parts.append(join(out))")
            self.line("return parts")
        else:
            self.line("return join(out)")
        head = ["def function(m):", " out = []", " add = out.append"]
        return "\n".join([*head, *[" parts = []"] * self.has_records, *self.lines])

    def entries(self, element: WireType) -> str:
        self.line("for x in entries:")
        self.depth += 1
        self.value(element, "x", False, self.flexible)
        self.flush()
        assert not self.has_records
        return "\n".join(["def function(entries):", " out = []", " add = out.append", *self.lines, " return join(out)"])

    def struct(self, cls: StructMeta, source: str) -> None:
        plain, tagged = self.fields(cls)
        for field in plain:
            compact = self.flexible and field.flexible
            self.value(field.type, f"{source}.{field.name}", field.is_nullable(self.version), compact)
        if self.flexible:
            self.tags(tagged, source)

    def tags(self, tagged: list[Field], source: str) -> None:
        if not tagged:
            self.run.append(("x", ""))
            return
        self.flush()
        count, values, outer = self.fresh("n"), self.fresh("tags"), self.add
        self.line(f"{count} = 0")
        self.line(f"{values} = []")
        for field in tagged:
            value, inner = f"{source}.{field.name}", self.fresh("inner")
            is_nullable = field.is_nullable(self.version)
            if is_nullable and isinstance(field.type, StructMeta):
                # Its default in Kafka is an empty struct, so that null is written, too.
                self.line("if True:")
            elif field.default is None:
                self.line(f"if {value} is not None:")
            else:
                self.line(f"if {value} != {self.constant('D', field.default)}:")
            self.depth += 1
            self.line(f"{inner} = []")
            self.add = self.fresh("add")
            self.line(f"{self.add} = {inner}.append")
            if is_nullable and isinstance(field.type, StructMeta):
                self.nullable_struct(field.type, value, null=b"\0")
            else:
                self.value(field.type, value, is_nullable, True)
            self.flush()
            self.line(f"{inner} = join({inner})")
            self.line(f"{values} += {uvarint(field.tag or 0)!r}, uvarint(len({inner})), {inner}")
            self.line(f"{count} += 1")
            self.depth -= 1
        self.add = outer
        self.line(f"{self.add}(ONE_BYTE[{count}])")
        self.line(f"if {count}: {self.add}(join({values}))")

    def value(self, wire_type: WireType, source: str, nullable: bool, compact: bool) -> None:
        if isinstance(wire_type, Scalar):
            self.run.append((wire_type.code, source))
        elif isinstance(wire_type, Sequence):
            self.sequence(wire_type, source, nullable, compact)
        elif isinstance(wire_type, ARRAY):
            self.array(wire_type.element, source, nullable, compact)
        elif nullable:
            self.nullable_struct(wire_type, source)
        else:
            self.struct(wire_type, source)

    def nullable_struct(self, cls: StructMeta, source: str, null: bytes = b"\xff") -> None:
        self.flush()
        name = self.fresh("s")
        self.line(f"{name} = {source}")
        self.line(f"if {name} is None: {self.add}({null!r})")
        self.line("else:")
        self.depth += 1
        self.run.append(("b", "1"))
        self.struct(cls, name)
        self.flush()
        self.depth -= 1

    def sequence(self, wire_type: Sequence, source: str, nullable: bool, compact: bool) -> None:
        value, length = self.fresh("v"), self.fresh("n")
        self.line(f"{value} = {source}")
        if nullable:
            self.line(f"if {value} is None: {value} = b''; {length} = {0 if compact else -1}")
            self.line("else:")
        self.depth += nullable
        if wire_type is STRING:
            label = self.label(source)
            self.line(f"{value} = {value}.encode()")
            # The compact form could express longer strings, but no broker reads them.
            self.line(f"if len({value}) > {STRING_BYTES}: {value} = ")
            self.lines[-1] += f"cut({value})" if label in CUT else f"too_long('{label}', {value})"
        self.line(f"{length} = len({value}){' + 1' if compact else ''}")
        self.depth -= nullable
        self.length(length, wire_type.prefix, compact)
        if wire_type is RECORDS:
            self.has_records = True
            self.line(
                f"if {length} > {1 if compact else 0}: parts.append(join(out)); out.clear(); parts.append({value})"
            )
        else:
            self.line(f"{self.add}({value})")

    def array(self, element: WireType, source: str, nullable: bool, compact: bool) -> None:
        items, count = self.fresh("a"), self.fresh("n")
        self.line(f"{items} = {source}")
        found = f"len({items}){' + 1' if compact else ''}"
        if nullable:
            self.line(f"if {items} is None: {items} = (); {count} = {0 if compact else -1}")
            self.line(f"else: {count} = {found}")
        else:
            self.line(f"{count} = {found}")
        self.length(count, "i", compact)
        if isinstance(element, Scalar):
            repeated = f"'16s' * len({items})" if element.size == 16 else f"f'{{len({items})}}{element.code}'"
            self.line(f"{self.add}(pack('>' + {repeated}, *{items}))")
            return
        self.line(f"if type({items}) is Encoded:")
        self.line(f" for part in {items}.parts: {self.add}(part)")
        self.line("else:")
        self.depth += 1
        item = self.element(source)
        self.line(f"for {item} in {items}:")
        self.depth += 1
        self.value(element, item, False, compact)
        self.flush()
        self.depth -= 2

    def length(self, value: str, prefix: str, compact: bool) -> None:
        """Write a length in one struct call with the run before it."""
        if not compact:
            self.run.append((prefix, value))
            self.flush()
        elif not self.run:
            self.line(f"{self.add}(ONE_BYTE[{value}] if {value} < 128 else uvarint({value}))")
        else:
            run = list(self.run)
            self.line(f"if {value} < 128:")
            self.depth += 1
            self.run.append(("B", value))
            self.flush()
            self.depth -= 1
            self.line("else:")
            self.depth += 1
            self.run = run
            self.flush()
            self.line(f"{self.add}(uvarint({value}))")
            self.depth -= 1

    def flush(self) -> None:
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self.run))
        values = ", ".join(value for _, value in self.run if value)
        if not values:
            self.line(f"{self.add}({bytes(layout.size)!r})")
        else:
            self.line(f"{self.add}({self.constant('P', layout.pack)}({values}))")
        self.run.clear()
