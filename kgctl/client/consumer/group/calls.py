"""Code of the application that the polling thread runs for the member: listeners and callbacks of commits, in order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.net.errors import BadValue, KgctlError
from kgctl.model.topic_partition import TopicPartition

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], KgctlError | None], object]


class Call:
    """Run it without any lock, then give it back to the member. `error` is what it raised."""

    def __init__(self, start: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._start = start

    def run(self) -> None:
        """Keep what it raises; let KeyboardInterrupt and its like pass as well."""
        try:
            answer = self._start()
            if inspect.iscoroutine(answer):
                answer.close()
                raise BadValue(
                    f"{answer.__qualname__} is a coroutine: a Consumer calls functions; AsyncConsumer awaits"
                )
        except Exception as error:  # noqa: BLE001  the application raises what it likes
            self.error = error
        except BaseException as error:
            self.error = error
            raise

    async def run_async(self) -> None:
        """The same for an application that may answer with an awaitable."""
        try:
            answer = self._start()
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:  # noqa: BLE001  the application raises what it likes
            self.error = error
        except BaseException as error:
            self.error = error
            raise


class ListenerCall(Call):
    """`kind` is revoked, assigned or lost."""

    def __init__(self, kind: str, listener: RebalanceListener, partitions: list[TopicPartition]) -> None:
        self.kind, self.partitions = kind, partitions
        self._listener = listener
        super().__init__(self._call)

    def __repr__(self) -> str:
        return f"<on_partitions_{self.kind}({', '.join(map(str, self.partitions))})>"

    def _call(self) -> object:
        return getattr(self._listener, f"on_partitions_{self.kind}")(self.partitions)


class CommitCall(Call):
    def __init__(
        self, callback: CommitCallback, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KgctlError | None
    ) -> None:
        super().__init__(lambda: callback(offsets, error))
