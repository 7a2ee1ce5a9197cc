"""Membership in a group of the consumer protocol (KIP-848): the broker assigns, the member reconciles."""
