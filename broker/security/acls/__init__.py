"""ACLs as Kafka's StandardAuthorizer has them."""
