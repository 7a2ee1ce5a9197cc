"""The bench itself."""
