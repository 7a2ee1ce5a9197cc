"""Text without a cursor: single lines."""
