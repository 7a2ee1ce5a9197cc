"""Kill cycles under transactional load: nothing is lost, repeated, half committed, or read before it is committed."""
