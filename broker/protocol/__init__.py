"""Bytes to messages and back: everything that the wire format says, without I/O."""
