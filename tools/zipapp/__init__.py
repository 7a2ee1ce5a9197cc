"""Builds dist/kgctl.pyz: broker, command line and dashboard with all requirements in one file."""
