"""SASL mechanisms as pure state machines, the client and the server side of each."""
