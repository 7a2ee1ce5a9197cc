import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * Hashes of the topics of groups as Kafka's coordinator computes them, one JSON object for each group.
 *
 * Arguments: the seed of the first group, and how many groups.
 */
public class MetadataHashVectors {
    private static final List<String> RACKS = List.of("a", "rack-1", "rack-10", "zürich", "😀", "\uff5e", "");

    public static void main(String[] arguments) {
        long first = Long.parseLong(arguments[0]);
        for (long seed = first; seed < first + Integer.parseInt(arguments[1]); seed++)
            print(new Random(seed * 0x9E3779B97F4A7C15L));
    }

    private static void print(Random random) {
        MetadataDelta delta = new MetadataDelta(MetadataImage.EMPTY);
        int brokers = 1 + random.nextInt(4);
        String[] racks = new String[brokers];
        boolean isNamed = random.nextInt(3) > 0;
        List<String> unused = new ArrayList<>(RACKS);
        for (int id = 0; id < brokers; id++) {
            racks[id] = isNamed && random.nextInt(4) > 0 ? unused.remove(random.nextInt(unused.size())) : null;
            delta.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(racks[id]));
        }
        List<String> rows = new ArrayList<>(), names = new ArrayList<>();
        for (int left = random.nextInt(6); left > 0; left--) {
            String name = "t" + random.nextInt(1000) + ".-_X".substring(random.nextInt(5)) + "y".repeat(random.nextInt(4) * random.nextInt(60));
            if (names.contains(name))
                continue;
            names.add(name);
            Uuid id = new Uuid(random.nextLong(), random.nextLong());
            delta.replay(new TopicRecord().setTopicId(id).setName(name));
            int partitions = 1 + random.nextInt(random.nextInt(6) == 0 ? 200 : 8);
            boolean isAlike = random.nextBoolean();
            StringBuilder placed = new StringBuilder();
            for (int partition = 0; partition < partitions; partition++) {
                List<Integer> replicas = new ArrayList<>();
                for (int broker = 0; broker < brokers; broker++)
                    if (isAlike ? broker == 0 : random.nextBoolean())
                        replicas.add(broker);
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(replicas).setIsr(replicas));
                placed.append(partition == 0 ? "" : ",").append(replicas);
            }
            rows.add("[\"" + name + "\",\"" + id + "\",[" + placed + "]]");
        }
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        Map<String, Long> hashes = new HashMap<>();
        for (String name : names)
            hashes.put(name, Utils.computeTopicHash(name, image));
        StringBuilder shown = new StringBuilder();
        for (int id = 0; id < brokers; id++)
            shown.append(id == 0 ? "" : ",").append(racks[id] == null ? "null" : "\"" + racks[id] + "\"");
        System.out.println("{\"racks\":[" + shown + "],\"topics\":[" + String.join(",", rows) + "],\"hash\":\"" + Utils.computeGroupHash(hashes) + "\"}");
    }
}
