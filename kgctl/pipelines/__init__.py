"""Pipelines on Spark: tables and a report about what consumer groups do.

What commands import (settings and catalogue, the runner, and the parts that need no Spark: `tables`, `results`, `replay`, most of
`archive`, `views.query`) does not import Spark; import contracts check it. Everything else runs in a separate process,
`python -m kgctl.pipelines`.
"""
