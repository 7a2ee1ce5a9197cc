import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a consumer group (KIP-848) that subscribes by a regular expression, which the broker resolves.
 *
 * Arguments: bootstrap servers, group, regular expression. It prints events as VerifiableConsumer does, commits what it has printed,
 * and leaves the group when it gets SIGTERM.
 */
public class PatternMember {
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", arguments[1]);
        config.put("group.protocol", "consumer");
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("metadata.max.age.ms", "1000");
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
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
        consumer.subscribe(new SubscriptionPattern(arguments[2]), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                moved("partitions_assigned", partitions);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                moved("partitions_revoked", partitions);
            }
        });
        print("startup_complete", "");
        try {
            while (!stopping.get()) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                for (ConsumerRecord<String, String> record : records) {
                    print("record_data", ", \"topic\": \"" + record.topic() + "\", \"partition\": " + record.partition()
                        + ", \"offset\": " + record.offset() + ", \"value\": \"" + record.value() + "\"");
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
            }
        } catch (WakeupException stopped) {
            // the signal
        } finally {
            consumer.close();
        }
    }

    private static void moved(String name, Collection<TopicPartition> partitions) {
        List<String> places = new ArrayList<>();
        for (TopicPartition place : partitions) {
            places.add("{\"topic\": \"" + place.topic() + "\", \"partition\": " + place.partition() + "}");
        }
        print(name, ", \"partitions\": [" + String.join(", ", places) + "]");
    }

    private static void print(String name, String rest) {
        System.out.println("{\"name\": \"" + name + "\"" + rest + "}");
    }
}
