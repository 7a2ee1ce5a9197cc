"""What a connection to a SASL listener does before it is served."""
