"""Simulation: the coordinator and its runner in a world with a simulated clock, disk, network and clients, all with faults."""
