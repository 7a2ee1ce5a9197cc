"""What screens of groups have in common: the keys that change groups, and why they are disabled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from broker.light_dataclasses import dataclass
from kgctl.tui import cells
from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.offset_deletion import DeleteOffsetsDialog
from kgctl.tui.dialogs.plan import PlanDialog
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.hindrance import hindrance
from kgctl.tui.screens.polled import PolledScreen

GONE = "{} is gone. Move the cursor to choose another one."


@dataclass(frozen=True, slots=True)
class Aim:
    """What an action acts on. `gone` names what was there and is not any more: then nothing acts."""

    groups: Sequence[str] = ()
    topic: str | None = None
    partition: int | None = None
    member_id: str | None = None
    instance: str | None = None
    gone: str = ""


DIALOGS: dict[str, Callable[[Feed, Aim], PlanDialog]] = {
    "reset": lambda feed, aim: ResetDialog(feed, aim.groups, aim.topic, aim.partition),
    "rebalance": lambda feed, aim: RebalanceDialog(feed, aim.groups),
    "remove": lambda feed, aim: RemoveMemberDialog(feed, aim.groups, aim.member_id, aim.instance),
    "delete": lambda feed, aim: DeleteDialog(feed, aim.groups),
    "delete_offsets": lambda feed, aim: DeleteOffsetsDialog(feed, aim.groups, aim.topic),
}


class ChangesGroups(PolledScreen[Any]):
    """A screen says with `aim` what its actions act on; without groups, they are disabled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "change('reset')", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "change('rebalance')", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "change('remove')", "Remove", tooltip="Remove members of the group"),
        Binding("d", "change('delete')", "Delete the group", show=False),
        Binding("D", "change('delete_offsets')", "Delete committed offsets of topics", show=False),
    ]

    def aim(self, what: str) -> Aim:
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change" and (hindrance(self.dashboard) or not self._has_aim(str(parameters[0]))):
            return None
        return super().check_action(action, parameters)

    def _has_aim(self, what: str) -> bool:
        aim = self.aim(what)
        return bool(aim.groups or aim.gone)

    def action_change(self, what: str) -> None:
        aim = self.aim(what)
        if aim.gone:
            self.notify(GONE.format(cells.name(aim.gone)), severity="warning", markup=False)
        elif aim.groups:
            # This screen refreshes at once when it resumes.
            self.app.push_screen(DIALOGS[what](self.dashboard.feed, aim), self._after_dialog)

    def _after_dialog(self, was_changed: bool | None) -> None:
        if was_changed:
            self.changed()

    def changed(self) -> None:
        """An action has changed something, or may have."""

    def refusal(self, key: str) -> str:
        """Why a key that changes something does nothing; empty for other keys."""
        bindings = self._bindings.key_to_bindings.get(key, [])
        changes = any(binding.action.startswith("change(") for binding in bindings)
        return hindrance(self.dashboard) if changes else ""
