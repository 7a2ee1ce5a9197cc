"""Conditions about a group, such as `state == Stable and lag < 100`: parsed by hand, checked against declared variables, never run as code."""
