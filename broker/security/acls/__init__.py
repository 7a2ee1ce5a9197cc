"""ACLs as Kafka's StandardAuthorizer has them."""

# Under what kind the store has them.
RECORD_KIND = "acls"
