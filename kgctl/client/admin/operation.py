"""Operations of the admin client: written once as steps, called by blocking and by awaiting clients."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cached_property, update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from kgctl.client.net.cluster import Cluster
from kgctl.client.net.steps import Steps, Within

P = ParamSpec("P")
T = TypeVar("T")

# How long an answer may wait for what is only added to it.
ADDITION_SECONDS = 5.0


class Operations:
    """What operations are made of. `seconds` is how long one may take."""

    cluster: Cluster
    seconds: float

    def shortly(self, steps: Steps[T], seconds: float) -> Within[T]:
        """Steps that may take at most this long, or as long as any operation if that is shorter."""
        return Within(steps, min(self.seconds, seconds))


class Blocking(Operations):
    """A client whose operations return their results."""

    def run(self, steps: Steps[T], seconds: float | None = None) -> T:
        raise NotImplementedError


class Awaiting(Operations):
    """A client whose operations are awaited."""

    async def run(self, steps: Steps[T], seconds: float | None = None) -> T:
        raise NotImplementedError


class operation(Generic[P, T]):
    """Makes a method of one that returns steps. Steps `Within` a time have that instead of the time of all operations."""

    def __init__(self, method: Callable[Concatenate[Any, P], Steps[T] | Within[T]]) -> None:
        self.steps = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, client: None, kind: Any) -> operation[P, T]: ...
    @overload
    def __get__(self, client: Blocking, kind: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, kind: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, kind: Any) -> Any:
        if client is None:
            return self
        return MethodType(self._awaiting if isinstance(client, Awaiting) else self._blocking, client)

    @cached_property
    def _blocking(self) -> Callable[..., T]:
        method = self.steps

        def blocking(client: Blocking, *given: P.args, **named: P.kwargs) -> T:
            steps = method(client, *given, **named)
            return client.run(steps.steps, steps.seconds) if isinstance(steps, Within) else client.run(steps)

        return update_wrapper(blocking, method)

    @cached_property
    def _awaiting(self) -> Callable[..., Coroutine[Any, Any, T]]:
        method = self.steps

        async def awaiting(client: Awaiting, *given: P.args, **named: P.kwargs) -> T:
            steps = method(client, *given, **named)
            if isinstance(steps, Within):
                return await client.run(steps.steps, steps.seconds)
            return await client.run(steps)

        return update_wrapper(awaiting, method)
