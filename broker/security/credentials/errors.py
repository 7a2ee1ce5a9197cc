"""Errors of configured credentials."""


class BadCredentials(Exception):
    """Configured credentials cannot be used. The text is one line for the user and contains no secret."""
