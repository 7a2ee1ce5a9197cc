"""What fills the terminal: a screen per file."""
