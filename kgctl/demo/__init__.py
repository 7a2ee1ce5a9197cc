"""The guided tour of `kgctl demo`: a broker, records, a group of consumer processes, rebalances, moved offsets."""
