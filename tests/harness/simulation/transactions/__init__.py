"""Worlds with transactional producers and read_committed consumers, over the real cores, runners, handlers and log."""
