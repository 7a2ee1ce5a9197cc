"""Opens the data directory that a command names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.commands.shared.settings import settings
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.store.offline import Offline

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A broker's data directory.", show_default=False)]


# So that a broker on the same machine gets the processor first.
NICENESS = 10


@contextmanager
def opened(ctx: typer.Context, path: Path, *, damaged_too: bool = False) -> Iterator[Offline]:
    """The directory; errors of reading it become one line."""
    from broker.inspection import NoData, StorageError, inspect
    from kgctl.store.offline import Offline

    if settings(ctx).owns_process:
        os.nice(NICENESS)
    try:
        with inspect(Path(os.path.abspath(path)), note, damaged_too=damaged_too) as directory:
            lost = None if damaged_too else directory.lost_commits
            if lost is not None:
                note(f"Warning: the acknowledged commits {lost[0]} to {lost[1]} are missing: what is shown is older")
            yield Offline(directory)
    except NoData as error:
        raise NotFound(str(error)) from None
    except StorageError as error:
        raise KgctlError(f"{Exception.__str__(error)}; `kgctl store verify {path}` names all damage") from None
