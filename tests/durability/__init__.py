"""A real broker that is killed repeatedly under real clients loses nothing that it acknowledged."""
