"""`python -m tests.harness.simulation.shares --seeds 1-100`: share groups in simulated worlds."""

from __future__ import annotations

import sys

from tests.harness.simulation.__main__ import main
from tests.harness.simulation.shares.world import run_seed

if __name__ == "__main__":
    sys.exit(main(run_seed, "tests.harness.simulation.shares"))
