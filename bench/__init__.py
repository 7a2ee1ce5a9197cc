"""Measures a broker over its sockets, beside any peers, in interleaved rounds. `python -m bench --help`."""
