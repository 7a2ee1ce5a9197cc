"""Pipelines on Spark: what consumer groups do, as tables that people look at.

Modules that a command imports (`catalog`, `schemas`, `settings`, `java`, `doctor`, `runner`, `tables.manifest`) know
nothing of Spark; everything else runs in a process of its own, `python -m kgctl.pipelines`.
"""
