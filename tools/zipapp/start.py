"""Starts kgctl from the directory beside this file; the script in front of kgctl.pyz runs it. Its arguments: kgctl.pyz and those of kgctl."""

import os
import sys

site = f"{__file__.removesuffix('.py')}-{sys.implementation.cache_tag}"
if not os.path.isdir(site):
    # Unpacked for another Python, or removed.
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
del sys.argv[0]
sys.path[0] = site

from kgctl.__main__ import main  # noqa: E402

main()
