"""Draws docs/pictures/report.png: the top of a report about an invented day of an invented shop.

`python -m tools.report_picture`; needs the pipelines extra, and chromium or google-chrome on PATH.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kgctl.pipelines.report import build
from tests.kgctl.pipelines.report.tables import commit

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "report.png"
NOON_MS = 1_767_268_800_000
STEP_MS, POINTS = 600_000, 72
GROUPS = ("checkout", "search-index", "recommendations", "fraud-check", "mail", "billing", "audit", "warehouse")
CAUSES = ("member joined", "member left", "session timed out", "subscription changed")
SIZE = "1100,1500"


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("needs chromium or google-chrome", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        _write(out, random.Random(7))
        page = build(out, made_ms=NOON_MS).html
        PICTURE.parent.mkdir(exist_ok=True)
        # No sandbox: the page is our own, and containers often have none.
        options = [
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={SIZE}",
            f"--screenshot={PICTURE}",
        ]
        subprocess.run([browser, *options, page.as_uri()], check=True, stderr=subprocess.DEVNULL)
    return 0


def _write(out: Path, randomness: random.Random) -> None:
    lag: list[dict[str, Any]] = []
    health: list[dict[str, Any]] = []
    for number, group in enumerate(GROUPS):
        behind, trouble = 0.0, number in (1, 3)
        for point in range(POINTS + 1):
            at = NOON_MS - (POINTS - point) * STEP_MS
            peak = 40 < point < 52 and number % 3 == 0
            behind = max(0.0, behind + randomness.gauss(600 if trouble and point > 50 else 900 if peak else -500, 400))
            for part in range(3):
                lag.append(
                    {
                        "group": group,
                        "topic": "orders",
                        "part": part,
                        "at": at,
                        "committed": 10_000 + point * 900,
                        "log_end": 10_000 + point * 900 + int(behind),
                        "lag": int(behind),
                        "lag_ms": int(behind * 60) if behind else 0,
                        "consume_rate": 1.5 if behind else 2.0,
                        "produce_rate": 1.2,
                        "eta_s": behind / 0.3 if not trouble else None,
                    }
                )
        for part in range(3):
            status = {1: "STOPPED", 3: "LAGGING"}.get(number, "OK")
            reason = {
                "STOPPED": "no commit for 1,860.0 s, after 10 commits within 540.0 s",
                "LAGGING": "lag never fell in 10 commits: from 310 to 5210",
                "OK": "no lag now",
            }[status]
            health.append(
                {
                    "group": group,
                    "topic": "orders",
                    "part": part,
                    "at": NOON_MS,
                    "status": status,
                    "complete": 1.0,
                    "lag": int(behind),
                    "eta_s": None,
                    "reasons": [reason],
                }
            )
    rebalances = [
        _rebalance(randomness, group, generation)
        for group in GROUPS
        for generation in range(1, randomness.randint(3, 9))
    ]
    for table, rows in (("f_lag", lag), ("health", health), ("f_rebalance", rebalances)):
        commit(out, table, rows)


def _rebalance(randomness: random.Random, group: str, generation: int) -> dict[str, Any]:
    ended = NOON_MS - POINTS * STEP_MS + generation * 4_500_000 + randomness.randrange(3_000_000)
    took = randomness.randint(40_000, 600_000)
    return {
        "group": group,
        "generation": generation,
        "started": ended - took,
        "ended": ended,
        "duration_ms": took,
        "duration_source": "events",
        "cause": randomness.choice(CAUSES),
        "reason": None,
        "joined": ["a"],
        "left": [],
        "members": 3,
        "moved_parts": randomness.randint(0, 6),
        "skew": 1.0,
        "commits_rejected": 0,
    }


if __name__ == "__main__":
    sys.exit(main())
