"""Security: SASL mechanisms, credentials, keys and certificates, for the broker and for clients."""
