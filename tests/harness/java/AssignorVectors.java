import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Plays groups through a few rebalances with Kafka's assignors, and prints one JSON object for each rebalance.
 *
 * Arguments: the seed of the first group and how many groups to play. Members are listed in the order in which Java's maps
 * iterate over them, because results depend on it.
 */
public class AssignorVectors {
    private static final String[] RACKS = {"r1", "r2", "r3"};

    private final Random random;
    private final String kind;
    private final boolean alike, racked, old;
    private final TreeMap<String, Integer> topics = new TreeMap<>();
    private final Map<String, List<String>> replicaRacks = new HashMap<>();
    private final TreeMap<String, Member> members = new TreeMap<>();
    private List<String> common;
    private int generation = 0, joined = 0;

    private class Member {
        ConsumerPartitionAssignor assignor = newAssignor();
        List<String> wanted;
        List<TopicPartition> owned = new ArrayList<>();
        int generation = -1;
        String rack = racked && random.nextInt(8) > 0 ? RACKS[random.nextInt(RACKS.length)] : null;
        String instance = random.nextInt(5) == 0 ? "i" + random.nextInt(1000) : null;
    }

    public static void main(String[] arguments) {
        long first = Long.parseLong(arguments[0]);
        for (long seed = first; seed < first + Integer.parseInt(arguments[1]); seed++)
            new AssignorVectors(seed).play();
    }

    private AssignorVectors(long seed) {
        random = new Random(seed * 0x9E3779B97F4A7C15L);  // near seeds would draw nearly the same
        kind = List.of("sticky", "cooperative-sticky", "sticky", "cooperative-sticky", "range", "roundrobin").get((int) (seed % 6));
        alike = random.nextBoolean();
        racked = random.nextInt(3) == 0;
        old = random.nextInt(6) == 0;
    }

    private ConsumerPartitionAssignor newAssignor() {
        return switch (kind) {
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            case "range" -> new RangeAssignor();
            default -> new RoundRobinAssignor();
        };
    }

    private void play() {
        for (int left = 1 + random.nextInt(4); left > 0; left--)
            addTopic(1 + random.nextInt(9));
        if (random.nextInt(3) == 0)  // co-partitioned topics
            topics.keySet().forEach(topic -> topics.put(topic, topics.firstEntry().getValue()));
        common = someTopics();
        for (int left = 1 + random.nextInt(6); left > 0; left--)
            join();
        for (int left = kind.contains("sticky") ? 4 : 1; left > 0; left--) {
            rebalance();
            change();
        }
    }

    private void addTopic(int partitions) {
        topics.put("" + (char) ('a' + topics.size()), partitions);
    }

    private List<String> someTopics() {
        List<String> chosen = new ArrayList<>(topics.keySet());
        chosen.removeIf(topic -> random.nextInt(3) == 0);
        if (random.nextInt(10) == 0)
            chosen.add("missing");
        return chosen.isEmpty() ? List.of(topics.firstKey()) : chosen;
    }

    private void join() {
        Member member = new Member();
        member.wanted = alike ? common : someTopics();
        members.put("m" + joined++ + "-" + random.nextInt(10000), member);
    }

    private void change() {
        int what = random.nextInt(10);
        if (what < 4 && members.size() > 1)
            members.remove(any());
        else if (what < 7)
            join();
        else if (what == 7)
            topics.merge(topics.firstKey(), 1 + random.nextInt(3), Integer::sum);
        else if (what == 8 && !alike)
            members.get(any()).wanted = someTopics();
        else
            addTopic(1 + random.nextInt(6));
        if (random.nextInt(4) == 0)
            join();
    }

    private String any() {
        return new ArrayList<>(members.keySet()).get(random.nextInt(members.size()));
    }

    private Cluster cluster() {
        List<Node> nodes = new ArrayList<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int i = 0; i < RACKS.length; i++)
            nodes.add(new Node(i, "host", 9092, RACKS[i]));
        topics.forEach((topic, count) -> {
            for (int i = 0; i < count; i++) {
                List<String> racks = replicaRacks.computeIfAbsent(topic + i, key -> {
                    List<String> drawn = new ArrayList<>(List.of(RACKS));
                    Collections.shuffle(drawn, random);
                    return new ArrayList<>(new TreeSet<>(drawn.subList(0, 1 + random.nextInt(2))));
                });
                Node[] replicas = nodes.stream().filter(node -> racks.contains(node.rack())).toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic, i, replicas[0], replicas, replicas));
            }
        });
        return new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
    }

    private void rebalance() {
        Map<String, Subscription> subscriptions = new HashMap<>();
        List<String> rows = new ArrayList<>();
        members.forEach((id, member) -> {
            boolean cooperative = kind.startsWith("cooperative");
            int shown = old ? -1 : member.generation;
            Subscription one = new Subscription(member.wanted, member.assignor.subscriptionUserData(Set.copyOf(member.wanted)),
                cooperative ? member.owned : List.of(), shown, Optional.ofNullable(member.rack));
            one.setGroupInstanceId(Optional.ofNullable(member.instance));
            subscriptions.put(id, one);
        });
        subscriptions.forEach((id, one) -> rows.add("[" + String.join(",", quoted(id), quoted(String.join(" ", one.topics())),
            encoded(one.userData()), quoted(text(one.ownedPartitions())), "" + one.generationId().orElse(-1),
            one.rackId().map(AssignorVectors::quoted).orElse("null"),
            one.groupInstanceId().map(AssignorVectors::quoted).orElse("null")) + "]"));
        Cluster cluster = cluster();
        Map<String, Assignment> result;
        try {
            result = newAssignor().assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        } catch (NullPointerException error) {
            return;  // Kafka's sticky assignors fail in rare groups with a member whose topics do not exist
        }
        System.out.println("{\"assignor\":" + quoted(kind) + ",\"topics\":{" + topics.keySet().stream()
            .map(topic -> quoted(topic) + ":" + quoted(cluster.partitionsForTopic(topic).stream().map(this::racks)
                .collect(Collectors.joining(" ")))).collect(Collectors.joining(",")) + "},\"members\":[" + String.join(",", rows)
            + "],\"assigned\":{" + new TreeMap<>(result).entrySet().stream()
            .map(entry -> quoted(entry.getKey()) + ":" + quoted(text(entry.getValue().partitions())))
            .collect(Collectors.joining(",")) + "}}");
        generation++;
        members.forEach((id, member) -> {
            if (random.nextInt(10) == 0)
                return;  // it misses this generation
            member.owned = new ArrayList<>(result.get(id).partitions());
            member.generation = generation;
            member.assignor.onAssignment(result.get(id), new ConsumerGroupMetadata("group", generation, id, Optional.empty()));
        });
    }

    private String racks(PartitionInfo partition) {
        StringBuilder numbers = new StringBuilder();
        for (Node node : partition.replicas())
            numbers.append(node.id() + 1);
        return numbers.toString();
    }

    private static String text(List<TopicPartition> partitions) {
        return partitions.stream().map(one -> one.topic() + one.partition()).collect(Collectors.joining(" "));
    }

    private static String encoded(ByteBuffer data) {
        if (data == null)
            return "null";
        byte[] octets = new byte[data.remaining()];
        data.duplicate().get(octets);
        return quoted(Base64.getEncoder().encodeToString(octets));
    }

    private static String quoted(String text) {
        return '"' + text + '"';
    }
}
