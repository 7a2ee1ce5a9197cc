"""`python -m tests.harness.simulation.consumer_groups --seeds 1-100`: members of both protocols in simulated worlds."""

from __future__ import annotations

import sys

from tests.harness.simulation.__main__ import main
from tests.harness.simulation.consumer_groups.world import run_seed

if __name__ == "__main__":
    sys.exit(main(run_seed, "tests.harness.simulation.consumer_groups"))
