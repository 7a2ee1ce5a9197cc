"""Broker options that Kafka 4.0 removed or renamed. An old server.properties may set them: they warn and are ignored."""

_NAMES = """
advertised.host.name advertised.port auto.include.jmx.reporter broker.id.generation.enable control.plane.listener.name
controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms delegation.token.master.key
eligible.leader.replicas.enable group.coordinator.new.enable host.name inter.broker.protocol.version
leader.imbalance.per.broker.percentage log.max.id.map.snapshots log.message.downconversion.enable
log.message.format.version log.message.timestamp.difference.max.ms metrics.jmx.blacklist metrics.jmx.whitelist
offsets.commit.required.acks port quota.consumer.default quota.producer.default replica.lag.max.messages
reserved.broker.max.id unstable.metadata.versions.enable
"""

FORMER = frozenset(_NAMES.split())

FORMER_PREFIXES = ("zookeeper.", "password.encoder.")
