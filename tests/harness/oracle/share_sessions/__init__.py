"""Share sessions on a real Kafka and on this broker: recorded walks of ShareFetch and ShareAcknowledge."""
