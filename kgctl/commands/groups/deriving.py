"""Events of groups on clusters without a history, derived from what coordinators store in `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError, Precondition

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.model.history import GroupEventRow


def deriver(admin: Admin, missing: Precondition, group: str | None = None) -> Callable[[], list[GroupEventRow]]:
    """A function that returns the events of the group, or of all, since its last call, oldest first.

    `missing` says why there is no history. The first call raises Precondition if __consumer_offsets cannot be read.
    """
    from kgctl.watch.derived_events import DerivedEvents

    derived = DerivedEvents()

    def read() -> list[GroupEventRow]:
        is_first = derived.offsets is None
        try:
            derived.offsets = admin.read_group_records(derived.offsets, derived.take, group)
        except KgctlError as error:
            if error.retriable or not is_first:
                raise
            raise Precondition(f"{missing} Events cannot be derived from __consumer_offsets either: {error}") from None
        return derived.rows()

    return read


def topic_names(admin: Admin) -> dict[str, str]:
    """The names of topics by their ids in hexadecimal digits, as derived assignments have them."""
    found = admin.run(admin.cluster.metadata(None))
    return {topic.topic_id.hex(): topic.name or "" for topic in found.topics}
