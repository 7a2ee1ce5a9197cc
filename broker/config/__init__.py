"""Broker configuration: the table of options, listener addresses, and values read from files and overrides."""
