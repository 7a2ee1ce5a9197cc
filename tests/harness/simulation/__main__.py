"""`python -m tests.harness.simulation --seeds 1-100`: run simulated worlds and report the first that breaks a promise."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable

from tests.harness.simulation.world import Outcome, run_seed

EVENTS = 3_000


def main(run: Callable[..., Outcome] = run_seed, module: str = "tests.harness.simulation") -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__)
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
            outcomes.append(run(seed, given.events, print if given.trace else None))
        except Exception as error:  # noqa: BLE001  (any exception means that the world failed)
            failed.append(seed)
            if not given.keep_going:
                traceback.print_exc()
            print(f"seed {seed} fails: {type(error).__name__}: {error}")
            print(f"repeat it with: python -m {module} --seeds {seed} --events {given.events} --trace")
            if not given.keep_going:
                return 1
    print(summary(outcomes, time.perf_counter() - began))
    if failed:
        print(f"{len(failed)} seeds fail: {failed[:20]}")
    elif len(outcomes) == 1:
        print(f"digest {outcomes[0].digest}")
    return 1 if failed else 0


def summary(outcomes: list[Outcome], took_s: float) -> str:
    events = sum(outcome.events for outcome in outcomes)
    return (
        f"{len(outcomes)} seeds, {events} events in {took_s:.1f} s ({events / took_s:.0f} per second), "
        f"{sum(o.simulated_us for o in outcomes) / 3_600_000_000:.1f} simulated hours, "
        f"{sum(o.brokers for o in outcomes)} brokers, {sum(o.generations for o in outcomes)} generations, "
        f"{sum(o.commits for o in outcomes)} acknowledged offsets, "
        f"at rest within {max((o.calmed_us for o in outcomes), default=0) / 1_000_000:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
