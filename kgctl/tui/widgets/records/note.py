"""What is special about the position: why a group may be stuck there."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from kgctl.model.browsed import RecordsPage
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.watch.holds import sentence


class PositionNote(Static):
    """Hidden while there is nothing to say."""

    DEFAULT_CSS = """
    PositionNote { height: auto; max-height: 4; padding: 0 2; display: none; }
    PositionNote.-visible { display: block; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show(self, page: RecordsPage, group: str | None) -> None:
        text = text_of(page, group)
        if self.content != text:
            self.update(text)
        self.set_class(bool(text), "-visible")


def text_of(page: RecordsPage, group: str | None) -> Content:
    said = [page.note] if page.note else []
    if page.hold is not None:
        said.append(sentence(page.hold).removesuffix("."))
    if page.error is not None:
        said.append(f"cannot read on: {page.error.message.rstrip('.')}")
    if said:
        return Content.assemble(
            (f"{glyphs.WARNING} ", "$text-warning"), ". ".join(cells.name(one) for one in said) + "."
        )
    if group is None or not any(one.offset >= page.position for one in page.records):
        return Content()
    here = f"the record at the committed offset {page.position:,} can be read"
    return Content(
        f"{glyphs.RIGHT} {page.topic}-{page.partition}: {here}. "
        "If the group is stuck, it fails while it processes this record, or a member does not poll."
    )
