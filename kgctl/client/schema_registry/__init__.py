"""Records whose bytes name a schema of a schema registry: to JSON and back. Needs kgctl[schema-registry]."""
