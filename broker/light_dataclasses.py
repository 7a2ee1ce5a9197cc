"""Dataclasses that cost little to declare: `dataclass`, `field` and `replace` like those of the standard library.

The standard library compiles up to eight methods for each class when its module is imported, about half a millisecond.
Here, a method is compiled at its first call. `dataclasses.fields`, `asdict` and
`is_dataclass` work. What this module does not have, such as classes without slots, it leaves to the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
_OPTIONS = {"frozen", "slots", "kw_only", "eq", "order"}
_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


class _Field:
    """A declared field, with the name and annotation that it gets from the class."""

    __slots__ = ("annotation", "compare", "default", "factory", "init", "kw_only", "metadata", "name", "repr")

    def __init__(self, default: Any, factory: Any, init: bool, repr: bool, compare: bool, metadata: Any) -> None:
        self.name, self.annotation, self.kw_only = "", "", False
        self.default, self.factory = default, factory
        self.init, self.repr, self.compare, self.metadata = init, repr, compare, metadata

    def standard(self) -> Any:
        import dataclasses

        made: dict[str, Any] = {
            "init": self.init,
            "repr": self.repr,
            "compare": self.compare,
            "metadata": self.metadata,
        }
        if self.default is not MISSING:
            made["default"] = self.default
        if self.factory is not MISSING:
            made["default_factory"] = self.factory
        return dataclasses.field(**made)


def _field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
    metadata: Any = None,
) -> Any:
    return _Field(default, default_factory, init, repr, compare, metadata)


def _dataclass(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return lambda decorated: _decorate(decorated, options)
    return _decorate(cls, options)


def _decorate(cls: Any, options: dict[str, Any]) -> Any:
    fields = _own_fields(cls, options) if options.get("slots") and options.keys() <= _OPTIONS else None
    if fields is None:
        return _standard(cls, options)
    inherited = {f.name: f for base in reversed(cls.__mro__[1:]) for f in base.__dict__.get("__light_fields__", ())}
    every = tuple({**inherited, **{f.name: f for f in fields}}.values())
    namespace = {key: value for key, value in cls.__dict__.items() if key not in ("__dict__", "__weakref__")}
    for own in fields:
        namespace.pop(own.name, None)
    namespace["__slots__"] = tuple(f.name for f in fields if f.name not in inherited)
    namespace["__light_fields__"] = every
    namespace["__match_args__"] = tuple(f.name for f in every if f.init and not f.kw_only)
    namespace["__dataclass_fields__"] = _StandardFields()
    made: Any = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    _add_methods(made, cls.__dict__, options)
    return made


def _own_fields(cls: Any, options: dict[str, Any]) -> list[_Field] | None:
    """The fields that the class body declares; None if the standard library has to look at them."""
    if any("__dataclass_fields__" in base.__dict__ and "__light_fields__" not in base.__dict__ for base in cls.__mro__):
        return None
    fields = []
    for name, annotation in cls.__annotations__.items():
        if not isinstance(annotation, str) or "InitVar" in annotation or "KW_ONLY" in annotation:
            return None
        if "ClassVar" in annotation:
            continue
        value = cls.__dict__.get(name, MISSING)
        found = value if isinstance(value, _Field) else _Field(value, MISSING, True, True, True, None)
        if found.default.__class__.__hash__ is None:
            raise ValueError(f"the default of {cls.__qualname__}.{name} is mutable: use default_factory")
        found.name, found.annotation, found.kw_only = name, annotation, bool(options.get("kw_only"))
        fields.append(found)
    return fields


def _standard(cls: Any, options: dict[str, Any]) -> Any:
    import dataclasses

    for name, value in list(cls.__dict__.items()):
        if isinstance(value, _Field):
            setattr(cls, name, value.standard())
    return dataclasses.dataclass(**options)(cls)


def _add_methods(cls: Any, own: Any, options: dict[str, Any]) -> None:
    """Add the methods that the class body, `own`, does not define."""
    frozen = bool(options.get("frozen"))
    if "__init__" not in own:
        cls.__init__ = _compiled_at_first_call(cls, "__init__", lambda: _init_source(cls, frozen))
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if options.get("eq", True):
        if "__eq__" not in own:
            cls.__eq__ = _compiled_at_first_call(cls, "__eq__", lambda: _comparison_source(cls, "__eq__", "=="))
        # Python itself sets __hash__ to None beside an __eq__ of the class body.
        if "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own):
            cls.__hash__ = _compiled_at_first_call(cls, "__hash__", lambda: _hash_source(cls)) if frozen else None
    for name, operator in _ORDER.items() if options.get("order") else ():
        source = partial(_comparison_source, cls, name, operator)
        setattr(cls, name, _compiled_at_first_call(cls, name, source))
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
        if "__getstate__" not in own:
            cls.__getstate__ = _state
        if "__setstate__" not in own:
            cls.__setstate__ = _set_state


def _compiled_at_first_call(
    cls: Any, name: str, source: Callable[[], tuple[str, dict[str, Any]]]
) -> Callable[..., Any]:
    def first_call(self: Any, /, *arguments: Any, **named: Any) -> Any:
        text, names = source()
        exec(text, names)
        compiled = names[name]
        compiled.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, compiled)
        return compiled(self, *arguments, **named)

    return first_call


def _values(cls: Any, owner: str) -> str:
    return "(" + "".join(f"{owner}.{f.name}, " for f in cls.__light_fields__ if f.compare) + ")"


def _comparison_source(cls: Any, name: str, operator: str) -> tuple[str, dict[str, Any]]:
    head = f"def {name}(self, other):\n if other.__class__ is not self.__class__: return NotImplemented\n"
    return f"{head} return {_values(cls, 'self')} {operator} {_values(cls, 'other')}", {}


def _hash_source(cls: Any) -> tuple[str, dict[str, Any]]:
    return f"def __hash__(self): return hash({_values(cls, 'self')})", {}


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.__light_fields__ if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in self.__light_fields__]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for declared, value in zip(self.__light_fields__, state, strict=True):
        object.__setattr__(self, declared.name, value)


def _init_source(cls: Any, frozen: bool) -> tuple[str, dict[str, Any]]:
    names: dict[str, Any] = {"_MISSING": MISSING}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for f in cls.__light_fields__:
        value = f.name
        if f.init:
            parameters = named if f.kw_only else positional
            if f.default is not MISSING:
                names[f"_default_{f.name}"] = f.default
                parameters.append(f"{f.name}=_default_{f.name}")
            elif f.factory is not MISSING:
                parameters.append(f"{f.name}=_MISSING")
                value = f"_factory_{f.name}() if {f.name} is _MISSING else {f.name}"
            else:
                parameters.append(f.name)
        elif f.default is not MISSING:
            names[value := f"_default_{f.name}"] = f.default
        elif f.factory is not MISSING:
            value = f"_factory_{f.name}()"
        else:
            continue
        names[f"_factory_{f.name}"] = f.factory
        names[f"_set_{f.name}"] = getattr(cls, f.name).__set__
        lines.append(f" _set_{f.name}(_self, {value})" if frozen else f" _self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" _self.__post_init__()")
    head = ", ".join(["_self", "/", *positional, *(["*", *named] if named else [])])
    return f"def __init__({head}):\n" + "\n".join(lines or [" pass"]), names


class _StandardFields:
    """The fields as `dataclasses.fields` wants them, made at the first use."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any) -> Any:
        import dataclasses

        declaring = next(cls for cls in owner.__mro__ if "__light_fields__" in cls.__dict__)
        declared = declaring.__light_fields__
        body = {f.name: f.standard() for f in declared}
        body["__annotations__"] = {f.name: f.annotation for f in declared}
        # With a docstring, dataclasses does not derive one from the signature.
        body |= {"__doc__": "Fields.", "__module__": declaring.__module__}
        decorate = dataclasses.dataclass(
            init=False, repr=False, eq=False, frozen=declaring.__setattr__ is _refuse_to_set
        )
        plain: Any = decorate(type(declaring.__name__, (), body))
        # What dataclasses asks the base classes of a class that it decorates.
        declaring.__dataclass_params__ = plain.__dataclass_params__
        declaring.__dataclass_fields__ = plain.__dataclass_fields__
        return plain.__dataclass_fields__


def _replace(instance: Any, /, **changes: Any) -> Any:
    if not hasattr(instance, "__light_fields__"):
        import dataclasses

        return dataclasses.replace(instance, **changes)
    for f in instance.__light_fields__:
        if f.init and f.name not in changes:
            changes[f.name] = getattr(instance, f.name)
        elif not f.init and f.name in changes:
            raise ValueError(f"the field {f.name} has init=False: replace() cannot set it")
    return instance.__class__(**changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _field, _replace
