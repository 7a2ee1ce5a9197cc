"""`python -m tests.harness.simulation.transactions --seeds 1-100`: run worlds with transactions and report those that break a promise."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence

from broker.protocol.errors import ErrorCode
from tests.harness.simulation.transactions.world import Outcome, run_seed

EVENTS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.simulation.transactions", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="one seed, or a range like 1-100")
    parser.add_argument(
        "--events", type=int, default=EVENTS, help=f"events with faults in each world (default: {EVENTS})"
    )
    parser.add_argument("--trace", action="store_true", help="print what happens in each world")
    parser.add_argument(
        "--keep-going", action="store_true", help="count failing seeds instead of stopping at the first"
    )
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    outcomes: list[Outcome] = []
    failed: list[int] = []
    began = time.perf_counter()
    for seed in range(int(first), int(last or first) + 1):
        try:
            outcomes.append(run_seed(seed, given.events, print if given.trace else None))
        except Exception as error:  # noqa: BLE001  (any exception means that the world failed)
            failed.append(seed)
            if not given.keep_going:
                traceback.print_exc()
            print(f"seed {seed} fails: {type(error).__name__}: {error}")
            again = f"--seeds {seed} --events {given.events} --trace"
            print(f"repeat it with: python -m tests.harness.simulation.transactions {again}", flush=True)
            if not given.keep_going:
                return 1
    print(summary(outcomes, time.perf_counter() - began))
    if failed:
        print(f"{len(failed)} seeds fail: {failed[:20]}")
    elif len(outcomes) == 1:
        print(f"digest {outcomes[0].digest}")
    return 1 if failed else 0


def summary(outcomes: Sequence[Outcome], took_s: float) -> str:
    codes: Counter[tuple[str, int]] = sum((outcome.codes for outcome in outcomes), Counter())
    refused = ", ".join(f"{name} {ErrorCode(code).name} {count}" for (name, code), count in codes.most_common(8))
    return (
        f"{len(outcomes)} seeds, {sum(o.events for o in outcomes)} events in {took_s:.1f} s, "
        f"{sum(o.simulated_us for o in outcomes) / 3_600_000_000:.1f} simulated hours, "
        f"{sum(o.brokers for o in outcomes)} brokers, {sum(o.commits for o in outcomes)} acknowledged commits, "
        f"{sum(o.delivered for o in outcomes)} records delivered; refused: {refused}"
    )


if __name__ == "__main__":
    sys.exit(main())
