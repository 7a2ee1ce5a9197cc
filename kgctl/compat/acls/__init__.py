"""kafka-acls."""
