"""Where kgctl keeps its contexts: the user's folder, and the file of a project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PROJECT_FILE = ".kgctl.toml"


def user_folder(environ: Mapping[str, str]) -> Path:
    """kgctl in XDG_CONFIG_HOME, else in ~/.config; it need not exist."""
    home = environ.get("XDG_CONFIG_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".config") / "kgctl"


def user_file(environ: Mapping[str, str]) -> Path:
    return user_folder(environ) / "config.toml"


def current_file(environ: Mapping[str, str]) -> Path:
    """The file that holds the name of the current context."""
    return user_folder(environ) / "current-context"


def consents_file(environ: Mapping[str, str]) -> Path:
    """The file that lists the project files to which the user has consented."""
    return user_folder(environ) / "trusted-projects"


def project_file(folder: Path) -> Path | None:
    """The project file of this folder or of the nearest one above it."""
    for place in (folder, *folder.parents):
        found = place / PROJECT_FILE
        if os.path.lexists(found):
            return found
    return None
