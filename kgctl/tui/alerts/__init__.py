"""Alerts: what the dashboard does when a verdict changes."""
