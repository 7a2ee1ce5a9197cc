import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Plays consumer groups (KIP-848) through a few target assignments as Kafka's coordinator makes them, one JSON object for each.
 *
 * Arguments: the seed of the first group and how many groups to play. Or `bench MEMBERS PARTITIONS TOPICS`: prints milliseconds.
 */
public class ServerAssignorVectors {
    private final Random random;
    private final ConsumerGroupPartitionAssignor assignor;
    private final boolean alike, large;
    private final TreeMap<String, Topic> topics = new TreeMap<>();
    private final SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
    private TimelineHashMap<String, ConsumerGroupMember> members = new TimelineHashMap<>(registry, 0);
    private final List<String> joinOrder = new ArrayList<>();
    private final Map<String, List<String>> wanted = new HashMap<>();
    private final Map<String, Assignment> target = new HashMap<>();
    private final Map<String, ConsumerGroupTargetAssignmentMemberValue> values = new HashMap<>();  // the records of the target
    private List<String> common = List.of();
    private int created = 0, joined = 0, most = 0;

    private record Topic(Uuid id, int partitions) {}

    public static void main(String[] arguments) {
        if (arguments[0].equals("bench")) {
            bench(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
            return;
        }
        long first = Long.parseLong(arguments[0]);
        for (long seed = first; seed < first + Integer.parseInt(arguments[1]); seed++)
            new ServerAssignorVectors(seed).play();
    }

    private ServerAssignorVectors(long seed) {
        random = new Random(seed * 0x9E3779B97F4A7C15L);  // near seeds would draw nearly the same
        assignor = seed % 4 == 0 ? new RangeAssignor() : new UniformAssignor();
        alike = seed % 4 == 0 ? random.nextBoolean() : seed % 4 == 1;
        large = random.nextInt(8) == 0;
    }

    private void play() {
        for (int left = 1 + random.nextInt(large ? 20 : 5); left > 0; left--)
            addTopic();
        common = someTopics();
        for (int left = random.nextInt(large ? 30 : 6); left > 0; left--)
            put(newMember());
        for (int left = 6; left > 0; left--)
            rebalance(change());
    }

    private void addTopic() {
        int most = random.nextInt(6) == 0 ? 120 : 10;
        topics.put("t" + created++, new Topic(new Uuid(random.nextLong(), random.nextLong()), 1 + random.nextInt(most)));
    }

    private List<String> someTopics() {
        List<String> chosen = new ArrayList<>(topics.keySet());
        chosen.removeIf(topic -> random.nextInt(3) == 0);
        if (random.nextInt(10) == 0)
            chosen.add("missing");
        return chosen;
    }

    private ConsumerGroupMember newMember() {
        String id = random.nextInt(3) == 0 ? "m" + random.nextInt(1000) : new Uuid(random.nextLong(), random.nextLong()).toString();
        return member(id, random.nextInt(5) == 0 ? "i" + random.nextInt(100) + "-" + joined++ : null, alike ? common : someTopics());
    }

    private ConsumerGroupMember member(String id, String instance, List<String> names) {
        wanted.put(id, names);
        return new ConsumerGroupMember.Builder(id).setInstanceId(instance).setRackId("r" + random.nextInt(3))
            .setSubscribedTopicNames(names).build();
    }

    private void put(ConsumerGroupMember member) {
        if (!members.containsKey(member.memberId()))
            joinOrder.add(member.memberId());
        members.put(member.memberId(), member);
        members.put(member.memberId(), member);  // its current assignment
        most = Math.max(most, joinOrder.size());
    }

    private void remove(String id) {
        members.remove(id);
        joinOrder.remove(id);
        target.remove(id);
        values.remove(id);
    }

    /** Changes the group; returns the member whose request causes the new assignment, or null. */
    private ConsumerGroupMember change() {
        int what = random.nextInt(12);
        String one = joinOrder.isEmpty() ? null : joinOrder.get(random.nextInt(joinOrder.size()));
        if (one == null || what < 4)
            return newMember();
        if (what < 6 && joinOrder.size() > 1)
            remove(one);
        else if (what == 6)
            for (int left = random.nextInt(joinOrder.size()); left > 0; left--)
                remove(joinOrder.get(random.nextInt(joinOrder.size())));
        else if (what == 7) {
            List<String> names = someTopics();
            if (!alike)
                return member(one, members.get(one).instanceId(), names);
            common = names;
            joinOrder.forEach(id -> members.put(id, member(id, members.get(id).instanceId(), names)));
        } else if (what == 8) {
            String grown = topics.firstKey();
            topics.computeIfPresent(grown, (name, topic) -> new Topic(topic.id, topic.partitions + 1 + random.nextInt(8)));
        } else if (what == 9 && topics.size() > 1)
            topics.remove(topics.lastKey());
        else if (what == 10) {
            addTopic();
            String added = topics.lastKey();
            common = new ArrayList<>(common);
            common.add(added);
            if (alike)
                joinOrder.forEach(id -> members.put(id, member(id, members.get(id).instanceId(), common)));
        } else
            for (int left = random.nextInt(large ? 20 : 4); left > 0; left--)
                put(newMember());
        return null;
    }

    private MetadataImage image() {
        MetadataDelta delta = new MetadataDelta(MetadataImage.EMPTY);
        for (int broker = 0; broker < 3; broker++)
            delta.replay(new RegisterBrokerRecord().setBrokerId(broker).setRack("r" + broker));
        topics.forEach((name, topic) -> {
            delta.replay(new TopicRecord().setTopicId(topic.id).setName(name));
            for (int i = 0; i < topic.partitions; i++)
                delta.replay(new PartitionRecord().setTopicId(topic.id).setPartitionId(i).setReplicas(List.of(i % 3)));
        });
        return delta.apply(new MetadataProvenance(0, 0, 0L, true));
    }

    private List<CoordinatorRecord> assign(ConsumerGroupMember updated, MetadataImage image, boolean homogeneous) {
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        target.forEach((id, assignment) -> assignment.partitions().forEach((topic, partitions) -> partitions.forEach(
            partition -> inverted.computeIfAbsent(topic, key -> new HashMap<>()).put(partition, id))));
        ConsumerTargetAssignmentBuilder builder = new ConsumerTargetAssignmentBuilder("group", 1, assignor)
            .withMembers(members).withTargetAssignment(target).withInvertedTargetAssignment(inverted).withMetadataImage(image)
            .withSubscriptionType(homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS);
        if (updated != null)
            builder.addOrUpdateMember(updated.memberId(), updated);
        List<CoordinatorRecord> records = builder.build().records();
        return records.subList(0, records.size() - 1);
    }

    private void rebalance(ConsumerGroupMember updated) {
        Map<String, ConsumerGroupMember> rows = new LinkedHashMap<>();
        joinOrder.forEach(id -> rows.put(id, members.get(id)));
        if (updated != null)
            rows.put(updated.memberId(), updated);
        Set<Set<String>> subscriptions = rows.values().stream().map(ConsumerGroupMember::subscribedTopicNames).collect(Collectors.toSet());
        boolean homogeneous = subscriptions.size() <= 1;
        List<String> before = new ArrayList<>();
        int stored = joinOrder.size(), most = this.most;
        rows.forEach((id, member) -> before.add("[" + quoted(id) + "," + quoted(member.instanceId()) + "," + quoted(member.rackId()) + ","
            + quoted(String.join(" ", wanted.get(id))) + "," + quoted(values.containsKey(id) ? text(values.get(id)) : null) + "]"));
        List<CoordinatorRecord> records = assign(updated, image(), homogeneous);
        if (updated != null)
            put(updated);
        List<String> after = new ArrayList<>();
        for (CoordinatorRecord record : records) {
            String id = ((ConsumerGroupTargetAssignmentMemberKey) record.key()).memberId();
            ConsumerGroupTargetAssignmentMemberValue value = (ConsumerGroupTargetAssignmentMemberValue) record.value().message();
            after.add("[" + quoted(id) + "," + quoted(text(value)) + "]");
            values.put(id, value);
            target.put(id, Assignment.fromRecord(value));
        }
        System.out.println("{\"assignor\":" + quoted(assignor.name()) + ",\"homogeneous\":" + homogeneous + ",\"topics\":{"
            + topics.entrySet().stream().map(entry -> quoted(entry.getKey()) + ":[" + quoted(entry.getValue().id.toString()) + ","
            + entry.getValue().partitions + "]").collect(Collectors.joining(",")) + "},\"stored\":"
            + stored + ",\"most\":" + most + ",\"members\":[" + String.join(",", before) + "],\"records\":["
            + String.join(",", after) + "]}");
    }

    private static String text(ConsumerGroupTargetAssignmentMemberValue value) {
        return value.topicPartitions().stream().map(topic -> topic.topicId() + ":" + topic.partitions().stream().map(String::valueOf)
            .collect(Collectors.joining(","))).collect(Collectors.joining(" "));
    }

    private static String quoted(String text) {
        return text == null ? "null" : '"' + text + '"';
    }

    private static void bench(int memberCount, int partitions, int topicCount) {
        for (String name : List.of("uniform", "uniform, different topics", "range")) {
            ServerAssignorVectors group = new ServerAssignorVectors(name.equals("range") ? 0 : 1);
            for (int i = 0; i < topicCount; i++)
                group.topics.put("t" + i, new Topic(new Uuid(group.random.nextLong(), group.random.nextLong()), partitions / topicCount));
            List<String> all = new ArrayList<>(group.topics.keySet());
            boolean homogeneous = !name.contains("different");
            for (int i = 0; i < memberCount; i++)
                group.put(group.member("member" + i, null, homogeneous ? all : all.subList(i % 2, all.size())));
            MetadataImage image = group.image();
            double[] fresh = new double[60], joined = new double[60];
            for (int round = 0; round < fresh.length; round++) {
                group.target.clear();
                long start = System.nanoTime();
                List<CoordinatorRecord> records = group.assign(null, image, homogeneous);
                fresh[round] = (System.nanoTime() - start) / 1e6;
                for (CoordinatorRecord record : records)
                    group.target.put(((ConsumerGroupTargetAssignmentMemberKey) record.key()).memberId(),
                        Assignment.fromRecord((ConsumerGroupTargetAssignmentMemberValue) record.value().message()));
                ConsumerGroupMember one = group.member("newcomer", null, all);
                start = System.nanoTime();
                group.assign(one, image, homogeneous);
                joined[round] = (System.nanoTime() - start) / 1e6;
            }
            System.out.printf("%s: new group first %.1f ms, warm %.1f ms; a member joins first %.1f ms, warm %.1f ms%n", name, fresh[0],
                fresh[fresh.length - 1], joined[0], joined[joined.length - 1]);
        }
    }
}
