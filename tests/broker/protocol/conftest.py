"""Imports kafka-python once, without its warnings."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It loads its schemas with a deprecated function of importlib.resources.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.producer  # noqa: F401
