"""Our broker and commands beside a real Kafka: the Kafka itself, its Java tools, and the comparisons."""
