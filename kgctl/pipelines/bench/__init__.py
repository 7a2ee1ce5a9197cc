"""Benchmarks of the jobs' core against other engines, and of the sources against each other."""
