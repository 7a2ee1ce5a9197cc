"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, and answers only with what has changed. Pure."""
