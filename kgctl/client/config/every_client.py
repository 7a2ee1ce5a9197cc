"""Options of every client: how to reach a cluster, and when to try again."""

from __future__ import annotations

from typing import TypedDict

from kgctl.client.config.option import Option

OPTIONS = (
    Option("bootstrap.servers", "list", (), "Addresses of the cluster, HOST:PORT, to learn its brokers from."),
    Option("client.id", "string", "", "The name of this client in the logs, metrics and quotas of brokers."),
    Option("request.timeout.ms", "int", 30_000, "How long a request waits for its answer.", least=0),
    Option(
        "reconnect.backoff.ms",
        "long",
        50,
        "The pause before the next connection to a broker that could not be reached; it doubles with each failure.",
        least=0,
    ),
    Option("reconnect.backoff.max.ms", "long", 1_000, "The longest pause between connections.", least=0),
    Option(
        "retry.backoff.ms",
        "long",
        100,
        "The pause before a failed request is sent again; it doubles with each failure.",
        least=0,
    ),
    Option(
        "send.buffer.bytes",
        "int",
        -1,
        "The send buffer of a socket (SO_SNDBUF). -1: the operating system chooses; Kafka's clients take 131072.",
        least=-1,
    ),
    Option(
        "receive.buffer.bytes",
        "int",
        -1,
        "The receive buffer of a socket (SO_RCVBUF). -1: the operating system chooses; Kafka's consumers take 65536.",
        least=-1,
    ),
    Option("retry.backoff.max.ms", "long", 1_000, "The longest pause between attempts of a request.", least=0),
    Option(
        "socket.connection.setup.timeout.ms",
        "long",
        10_000,
        "How long a connection may take to be ready; it doubles with each failure.",
        least=0,
    ),
    Option("socket.connection.setup.timeout.max.ms", "long", 30_000, "The longest time for a connection.", least=0),
    Option(
        "connections.max.idle.ms", "long", 540_000, "Close a connection without requests after this time; -1: never."
    ),
    Option("metadata.max.age.ms", "long", 300_000, "Ask for the metadata again after this time.", least=0),
    Option(
        "metadata.recovery.strategy",
        "string",
        "rebootstrap",
        "What to do when no known broker can be reached: begin again with bootstrap.servers, or nothing.",
        choices=("rebootstrap", "none"),
    ),
    Option(
        "metadata.recovery.rebootstrap.trigger.ms",
        "long",
        300_000,
        "Begin again with bootstrap.servers if no broker has answered for this time.",
        least=0,
    ),
)
# Kafka's clients have these; here they change nothing.
IGNORED = tuple(
    Option(name, "class", None, doc, is_ignored=True)
    for name, doc in (
        ("auto.include.jmx.reporter", "There is no JMX."),
        ("client.dns.lookup", "All addresses of a name are tried, as with use_all_dns_ips."),
        ("config.providers", "The program resolves its configuration itself."),
        ("enable.metrics.push", "Metrics are not pushed to brokers."),
        ("metric.reporters", "There are no reporters; see metrics()."),
        ("metrics.num.samples", "Metrics are counts and totals."),
        ("metrics.recording.level", "All metrics are recorded."),
        ("metrics.sample.window.ms", "Metrics are counts and totals."),
        ("security.providers", "TLS is OpenSSL's."),
    )
)


class ClientOptions(TypedDict, total=False):
    """The options of every client as keyword arguments, without those of security. `bootstrap_servers` comes before them."""

    client_id: str
    request_timeout_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
