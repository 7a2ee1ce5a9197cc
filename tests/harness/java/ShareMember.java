import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group (KIP-932) that does with each record what its value begins with: accept, reject, release until its second
 * delivery, or hold, which means that it polls no more.
 *
 * Arguments: bootstrap servers, group, topic. It prints a line of JSON for each record, and leaves the group when it gets SIGTERM.
 */
public class ShareMember {
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", arguments[1]);
        config.put("share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        AtomicBoolean stopping = new AtomicBoolean();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping.set(true);
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(arguments[2]));
        System.out.println("{\"name\": \"startup_complete\"}");
        try {
            while (!stopping.get()) {
                boolean holds = false;
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                for (ConsumerRecord<String, String> record : records) {
                    short count = record.deliveryCount().orElse((short) 0);
                    System.out.println("{\"name\": \"record\", \"value\": \"" + record.value() + "\", \"count\": " + count + "}");
                    holds |= record.value().startsWith("hold");
                    consumer.acknowledge(record, type(record.value(), count));
                }
                while (holds && !stopping.get())
                    Thread.sleep(50);
                Map<TopicIdPartition, Optional<KafkaException>> failed = consumer.commitSync();
                failed.values().removeIf(Optional::isEmpty);
                if (!failed.isEmpty())
                    System.out.println("{\"name\": \"failed\", \"errors\": \"" + failed.values() + "\"}");
                else if (!records.isEmpty())
                    System.out.println("{\"name\": \"acknowledged\"}");
            }
        } catch (WakeupException stopped) {
            // By the shutdown hook.
        } finally {
            consumer.close();
        }
    }

    private static AcknowledgeType type(String value, short count) {
        if (value.startsWith("reject"))
            return AcknowledgeType.REJECT;
        return value.startsWith("release") && count < 2 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
    }
}
