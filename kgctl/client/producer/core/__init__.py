"""What decides how records are sent: partitions, batches, sequences, retries, transactions. Reads no clock and does no I/O."""
