"""Named tuples that cost little to declare: `NamedTuple` like that of the standard library, in a tenth of the time.

The standard library compiles a function for each class and checks each annotation when its module is imported. Here, the
function that makes a tuple is compiled at its first call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

try:
    from _collections import _tuplegetter  # type: ignore[import-not-found]
except ImportError:
    from operator import itemgetter

    def _tuplegetter(index: int, doc: str) -> Any:
        return property(itemgetter(index), doc=doc)


class _Declaration(type):
    """Turns the body of a class with annotations into a subclass of tuple."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if bases != (_Base,):
            raise TypeError(f"{name}: a named tuple has no other base classes")
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        if fields[len(fields) - len(defaults) :] != tuple(defaults):
            raise TypeError(f"{name}: a field without default is behind one with a default")
        made = type(name, (tuple,), _namespace(fields, defaults) | namespace | {"__orig_bases__": (NamedTuple,)})
        made.__new__ = _compiled_at_first_call(made, fields, defaults)  # type: ignore[method-assign]
        return made


def _namespace(fields: tuple[str, ...], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "__slots__": (),
        "__match_args__": fields,
        "_fields": fields,
        "_field_defaults": dict(defaults),
        "__repr__": _repr,
        "__getnewargs__": _values,
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        **{field: _tuplegetter(index, f"Alias for field number {index}") for index, field in enumerate(fields)},
    }


def _compiled_at_first_call(made: type, fields: tuple[str, ...], defaults: Mapping[str, Any]) -> Callable[..., Any]:
    def first_call(cls: Any, /, *values: Any, **named: Any) -> Any:
        given = {f"_default_{field}": value for field, value in defaults.items()}
        parameters = ", ".join(f"{field}=_default_{field}" if field in defaults else field for field in fields)
        source = f"lambda _cls, {parameters}: _tuple_new(_cls, ({''.join(f'{field}, ' for field in fields)}))"
        compiled = eval(source, given | {"_tuple_new": tuple.__new__, "__builtins__": {}})
        compiled.__name__, compiled.__qualname__ = "__new__", f"{made.__qualname__}.__new__"
        made.__new__ = staticmethod(compiled)  # type: ignore[method-assign]
        return compiled(cls, *values, **named)

    return staticmethod(first_call)


def _make(cls: Any, values: Iterable[Any]) -> Any:
    made = tuple.__new__(cls, values)
    if len(made) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _asdict(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=True))


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(self)


def _repr(self: Any) -> str:
    shown = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"{self.__class__.__name__}({shown})"


_Base = type.__new__(_Declaration, "NamedTuple", (), {})

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    NamedTuple = _Base
