"""The authorization matrix: every request in every version, sent by principals with different ACLs."""
