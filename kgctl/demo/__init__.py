"""The main job as a show: a broker, records, a consumer group in processes of its own, a rebalance, moved offsets."""
