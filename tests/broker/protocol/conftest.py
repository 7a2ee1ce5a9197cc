"""Loads kafka-python once, without its warnings."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It reads its schemas with a function of importlib.resources that is on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.producer  # noqa: F401
