"""Measurements of a cluster with the clients of kgctl."""
