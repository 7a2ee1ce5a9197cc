"""Pipelines on Spark: tables and a report about what consumer groups do.

The modules that commands import (`catalog`, `schemas`, `settings`, `progress`, `runner`, `doctor`, `tables.manifest`,
`tables.formats`, `tables.maintenance`, `views.query`, `bench.compare`, `bench.sources`) do not import Spark. Everything else
runs in a separate process, `python -m kgctl.pipelines`.
"""
