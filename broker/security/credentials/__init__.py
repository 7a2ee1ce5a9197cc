"""What a broker checks credentials against: SCRAM users in the store, PLAIN users in the configuration, and tokens."""
