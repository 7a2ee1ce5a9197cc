"""Measures this broker and peers over sockets, in interleaved rounds. See `python -m bench --help`."""
