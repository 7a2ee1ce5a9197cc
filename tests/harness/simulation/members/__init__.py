"""Simulated worlds of real members: kgctl's network and membership beside the real coordinator core."""
