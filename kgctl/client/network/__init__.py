"""What a client knows about a cluster and does with its connections, as a state machine: events and time in, commands out."""
