"""Carries out what the network of a client decides: sockets, threads and clocks."""
