"""Metrics of the broker for Prometheus: what is counted (`broker_families.py`, `client_families.py`), and who may read it (`server.py`)."""
