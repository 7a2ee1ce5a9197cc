"""A real broker, killed again and again under real clients, loses nothing that it acknowledged."""
