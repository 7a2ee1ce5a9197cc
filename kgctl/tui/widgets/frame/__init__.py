"""What surrounds the contents of a screen: status line, error page, pane names, filter."""
