"""The group coordinator. `coordinator` dispatches; this package holds what all group types share, `classic` the classic type."""
