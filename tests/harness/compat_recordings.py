"""What Kafka's tools printed about the prepared state on our broker, with ids and addresses normalised.

python -m tests.harness.compat_recordings      records again; needs java
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from tests.harness import clusters
from tests.harness.clusters import Cluster
from tests.harness.compat_configs import OF_GROUPS
from tests.harness.compat_state import (
    GROUP_CHANGES,
    OTHER_TOOLS,
    TOOL_OF_GROUPS,
    Case,
    commit_all,
    group_reads,
    prepared,
)
from tests.harness.tool_server import ToolServer

FILE = Path(__file__).parents[1] / "kgctl" / "compat" / "recorded.json"
PLANS = "PLANS"
_EVERY = 9


def chosen(folder: Path, dialect: str) -> list[tuple[str, Case]]:
    """Tool and arguments of what is recorded: a part of what `make test-reference` compares."""
    reads = [case for case in group_reads(folder) if "live" not in case or "--describe" in case]
    wanted = [
        ["--list", "--type", "--state"],
        ["--describe", "--all-groups"],
        *(case for case in reads if "--members" in case and "live" in case),
        *(case for case in reads if "--state" in case and "live" in case),
        *reads[20::_EVERY],
        *GROUP_CHANGES[3::3],
    ]
    others = [
        (tool, case)
        for tool, cases in OTHER_TOOLS.items()
        for case in [case for case in cases if case not in OF_GROUPS][::_EVERY]
    ]
    # The tool of 3.9 does not know them.
    of_groups = [("configs", case) for case in OF_GROUPS[::2] if dialect != "3.9"]
    return [*((TOOL_OF_GROUPS, case) for case in wanted), *others, *of_groups]


def normalised(text: str, cluster: Cluster, folder: Path) -> str:
    text = text.replace(cluster.bootstrap_servers, "127.0.0.1:00000").replace(str(folder), PLANS)
    text = re.sub(r"TopicId: [\w-]{22}", "TopicId: " + "A" * 22, text)
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000", text)


def record() -> None:
    from kgctl.compat.tool import DIALECTS

    rows: list[dict[str, Any]] = []
    with clusters.start("kgctl") as cluster, prepared(cluster), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for dialect, version in DIALECTS.items():
            with ToolServer(version) as server:
                for tool, case in chosen(folder, dialect):
                    commit_all(cluster)
                    done = server.run(tool, "--bootstrap-server", cluster.bootstrap_servers, *case)
                    stdout = normalised(done.stdout, cluster, folder)
                    words = [word.replace(str(folder), PLANS) for word in case]
                    rows.append(
                        {"dialect": dialect, "tool": tool, "arguments": words, "code": done.code, "stdout": stdout}
                    )
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    record()
