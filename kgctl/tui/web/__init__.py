"""The dashboard in a browser: a server on loopback, and one dashboard process per page."""
