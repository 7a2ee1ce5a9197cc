"""Reaching a cluster: connections, metadata, steps and the drivers that run them."""
