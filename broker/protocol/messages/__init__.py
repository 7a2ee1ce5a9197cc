"""One module per API: its request and response, in all supported versions."""
