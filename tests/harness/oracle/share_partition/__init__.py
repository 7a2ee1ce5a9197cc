"""Random walks of a share partition, played by Kafka's SharePartition and by ours."""
