"""Simulations that show how designs differ. Pure: a seed decides everything."""
