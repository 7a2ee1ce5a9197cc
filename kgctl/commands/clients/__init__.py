"""`kgctl clients`: who is connected to the brokers."""
