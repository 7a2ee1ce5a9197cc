"""How fast the jobs' core and the sources are, beside others."""
