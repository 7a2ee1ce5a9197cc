"""Broker configuration: the option table, and values read from files and overrides."""
