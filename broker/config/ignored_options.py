"""Broker options of Kafka 4.1 that this broker does not implement. They cause a warning; unknown names are an error."""

_NAMES = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms alter.config.policy.class.name
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.session.timeout.ms
client.quota.callback.class compression.gzip.level compression.lz4.level compression.type compression.zstd.level
controlled.shutdown.enable controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.quorum.append.linger.ms controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
controller.quorum.retry.backoff.ms controller.quorum.voters
controller.socket.timeout.ms create.topic.policy.class.name
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
delegation.token.secret.key delete.records.purgatory.purge.interval.requests early.start.listeners
fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms
group.coordinator.threads group.share.enable group.share.persister.class.name group.streams.heartbeat.interval.ms
group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
group.streams.max.standby.replicas group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
group.streams.num.standby.replicas group.streams.session.timeout.ms initial.broker.registration.timeout.ms
inter.broker.listener.name internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
internal.metadata.max.batch.size.in.bytes internal.metadata.max.fetch.size.in.bytes kafka.metrics.polling.interval.secs
kafka.metrics.reporters leader.imbalance.check.interval.seconds log.cleaner.dedupe.buffer.size log.cleaner.enable
log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads
log.dir log.dir.failure.timeout.ms log.dirs log.flush.interval.messages log.flush.interval.ms
log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms
log.index.size.max.bytes log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms log.preallocate
log.roll.jitter.hours log.roll.jitter.ms log.segment.delete.delay.ms max.connection.creation.rate
metadata.log.dir metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms min.insync.replicas num.io.threads num.network.threads num.recovery.threads.per.data.dir
num.replica.alter.log.dirs.threads num.replica.fetchers offsets.commit.timeout.ms offsets.load.buffer.size
offsets.topic.compression.codec offsets.topic.replication.factor principal.builder.class process.roles
producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests
remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
remote.log.storage.system.enable replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
replica.fetch.response.max.bytes replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms
replica.lag.time.max.ms replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms sasl.client.callback.handler.class
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwt.retriever.class
sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
security.inter.broker.protocol security.providers server.max.startup.time.ms share.coordinator.append.linger.ms
share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr
share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
share.coordinator.threads share.coordinator.write.timeout.ms
share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
socket.receive.buffer.bytes socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes
ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm
transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.replication.factor
transaction.two.phase.commit.enable unclean.leader.election.enable unclean.leader.election.interval.ms
unstable.api.versions.enable unstable.feature.versions.enable
"""

UNIMPLEMENTED = frozenset(_NAMES.split())
