"""What fills the terminal: a screen or a dialog per file."""
