"""Regions of a screen, named after what a person sees there."""
