"""Wire types and declarations of messages; `codec` turns them into functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as AnySequence
from typing import Any, ClassVar, TypeAlias, dataclass_transform

NEVER = 1 << 15


class DecodeError(ValueError):
    """The bytes do not match the declared message and version."""


class EncodeError(ValueError):
    """A value does not fit the declared message and version."""


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


class Scalar:
    """A value of fixed width; `code` is its letter in a struct format."""

    __slots__ = ("code", "name", "size")

    def __init__(self, name: str, code: str, size: int) -> None:
        self.name, self.code, self.size = name, code, size

    def __repr__(self) -> str:
        return self.name


class Sequence:
    """A length-prefixed value: text, bytes, or records, which are bytes that are not copied."""

    __slots__ = ("name", "prefix", "prefix_size")

    def __init__(self, name: str, prefix: str, prefix_size: int) -> None:
        self.name, self.prefix, self.prefix_size = name, prefix, prefix_size

    def __repr__(self) -> str:
        return self.name


class ARRAY:
    """A counted list of values of one type. A struct that is declared in the same message is given by name."""

    __slots__ = ("element",)

    def __init__(self, element: WireType | str) -> None:
        self.element: Any = element

    def __repr__(self) -> str:
        return f"ARRAY({self.element})"


BOOL = Scalar("BOOL", "?", 1)
INT8 = Scalar("INT8", "b", 1)
INT16 = Scalar("INT16", "h", 2)
UINT16 = Scalar("UINT16", "H", 2)
INT32 = Scalar("INT32", "i", 4)
UINT32 = Scalar("UINT32", "I", 4)
INT64 = Scalar("INT64", "q", 8)
FLOAT64 = Scalar("FLOAT64", "d", 8)
UUID = Scalar("UUID", "16s", 16)
STRING = Sequence("STRING", "h", 2)
BYTES = Sequence("BYTES", "i", 4)
RECORDS = Sequence("RECORDS", "i", 4)
# The maximum length of a string, also in flexible versions, whose encoding would allow more.
STRING_BYTES = 2**15 - 1

ZERO_UUID = bytes(16)

WireType: TypeAlias = "Scalar | Sequence | ARRAY | StructMeta"


class Field:
    """A declared field: its type and the versions that have it."""

    __slots__ = ("default", "flexible", "name", "null_since", "since", "tag", "type", "until")

    def __init__(
        self,
        type: WireType | str,
        default: Any,
        since: int,
        until: int,
        null_since: int,
        tag: int | None,
        flexible: bool,
    ) -> None:
        self.name = ""
        self.type: Any = type
        self.default = default
        self.since, self.until, self.null_since = since, until, null_since
        self.tag, self.flexible = tag, flexible

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable(self, version: int) -> bool:
        return version >= self.null_since

    def absent(self) -> Any:
        """The value in versions without the field."""
        return [] if isinstance(self.default, list) else self.default


def wire(
    type: WireType | str,
    *,
    default: Any = REQUIRED,
    since: int = 0,
    until: int = NEVER,
    null_since: int = NEVER,
    tag: int | None = None,
    flexible: bool = True,
) -> Any:
    """Declare a field.

    `since` and `until` are the first and last version with the field; from `null_since` on it may be None.
    `tag` makes it a tagged field, which is omitted if it equals its default (for a tagged struct: None).
    `flexible=False` keeps the fixed-width length prefix in flexible versions.
    A list as default means a new empty list.
    """
    if default is REQUIRED and (since or until != NEVER or tag is not None):
        raise TypeError("a field that is absent in some versions needs a default")
    return Field(type, default, since, until, null_since, tag, flexible)


class Encoded:
    """Entries of an array of structs that are already encoded, in parts."""

    __slots__ = ("_count", "parts")

    def __init__(self) -> None:
        self._count = 0
        self.parts: list[bytes] = []

    def add(self, part: bytes, count: int) -> None:
        self.parts.append(part)
        self._count += count

    def __len__(self) -> int:
        return self._count


class Gradual:
    """Entries of an array of structs that are made when they are encoded, so that a long answer can be made bit by bit.

    `make` turns each of the sources into an entry. `size` entries take a millisecond or so.
    """

    __slots__ = ("_keep", "_make", "_sources", "size")

    def __init__(self, sources: AnySequence[Any], make: Callable[[Any], Any], size: int) -> None:
        self._sources = sources
        self._make = make
        self._keep: Callable[[Any], bool] | None = None
        self.size = size

    def only(self, keep: Callable[[Any], bool]) -> Gradual:
        """The same without the entries for which `keep` is false."""
        kept, before = Gradual(self._sources, self._make, self.size), self._keep
        kept._keep = keep if before is None else lambda entry: before(entry) and keep(entry)
        return kept

    def __len__(self) -> int:
        return len(self._sources) if self._keep is None else sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        return filter(self._keep, map(self._make, self._sources)) if self._keep else map(self._make, self._sources)

    def chunks(self) -> Iterator[list[Any]]:
        for at in range(0, len(self._sources), self.size):
            made = map(self._make, self._sources[at : at + self.size])
            yield list(made if self._keep is None else filter(self._keep, made))


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
class StructMeta(type):
    """Turns `name: type = wire(...)` lines into slots and a keyword-only constructor.

    Not dataclasses: their decorator takes 0.4 ms per class, and the broker has 150 ms from spawn to its first response.
    """

    FIELDS: tuple[Field, ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> StructMeta:
        fields = []
        for key, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = key
                fields.append(value)
                del namespace[key]
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["FIELDS"] = tuple(fields)
        if fields:
            namespace["__init__"] = _first_init
        for inner in namespace.values():
            if isinstance(inner, StructMeta):
                _resolve(inner, namespace)
        cls = super().__new__(mcs, name, bases, namespace)
        cls.readers, cls.writers = {}, {}
        return cls

    readers: dict[int, Callable[[bytes, int, int], Any]]
    writers: dict[int, Callable[[Any], Any]]


def _resolve(struct: StructMeta, siblings: dict[str, Any]) -> None:
    """Replace names of structs by the structs: a class body cannot refer to sibling classes."""
    for field in struct.FIELDS:
        if isinstance(field.type, str):
            field.type = siblings[field.type]
        elif isinstance(field.type, ARRAY) and isinstance(field.type.element, str):
            field.type.element = siblings[field.type.element]


def _first_init(self: Any, **values: Any) -> None:
    cls: Any = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, **values)


def _compile_init(cls: StructMeta) -> Callable[..., None]:
    names: dict[str, Any] = {"REQUIRED": REQUIRED}
    parameters, lines = [], []
    for field in cls.FIELDS:
        if field.default is REQUIRED:
            parameters.append(field.name)
            lines.append(f" self.{field.name} = {field.name}")
        elif isinstance(field.default, list):
            parameters.append(f"{field.name}=REQUIRED")
            lines.append(f" self.{field.name} = [] if {field.name} is REQUIRED else {field.name}")
        else:
            names[f"_{field.name}"] = field.default
            parameters.append(f"{field.name}=_{field.name}")
            lines.append(f" self.{field.name} = {field.name}")
    source = f"def __init__(self, *, {', '.join(parameters)}):\n" + "\n".join(lines)
    exec(source, names)
    compiled: Callable[..., None] = names["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


class Struct(metaclass=StructMeta):
    """Named fields in wire order, part of a message."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in type(self).FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in type(self).FIELDS)
        return f"{type(self).__qualname__}({shown})"


class Message(Struct):
    """A top-level struct in several versions."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER
