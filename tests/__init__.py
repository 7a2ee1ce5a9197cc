"""The tests of both packages."""
