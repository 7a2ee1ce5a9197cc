"""The assignors that run on the broker (KIP-848). Pure."""
