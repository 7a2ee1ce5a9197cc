"""Offline reading of a data directory that a broker may be using: nothing in it is written, locked or created. No start imports this."""
