"""Fetches ahead of the application: sessions, the buffer, positions. Pure: time and answers are arguments."""
