import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ShareTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Plays share groups (KIP-932) through a few target assignments as Kafka's coordinator makes them, one JSON object for each.
 *
 * Arguments: the seed of the first group and how many groups to play.
 */
public class ShareAssignorVectors {
    private final Random random;
    private final boolean alike, large;
    private final TreeMap<String, Uuid> topics = new TreeMap<>();
    private final Map<String, Integer> counts = new HashMap<>();
    private final Map<Uuid, Set<Integer>> initialized = new HashMap<>();
    private final TimelineHashMap<String, ShareGroupMember> members =
        new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
    private final List<String> joinOrder = new ArrayList<>();
    private final Map<String, List<String>> wanted = new HashMap<>();
    private final Map<String, Assignment> target = new HashMap<>();
    private final Map<String, ShareGroupTargetAssignmentMemberValue> values = new HashMap<>();  // the records of the target
    private List<String> common = List.of();
    private int most = 0;

    public static void main(String[] arguments) {
        long first = Long.parseLong(arguments[0]);
        for (long seed = first; seed < first + Integer.parseInt(arguments[1]); seed++)
            new ShareAssignorVectors(seed).play();
    }

    private ShareAssignorVectors(long seed) {
        random = new Random(seed * 0x9E3779B97F4A7C15L);  // near seeds would draw nearly the same
        alike = seed % 2 == 0;
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
        String name = "t" + topics.size();
        topics.put(name, new Uuid(random.nextLong(), random.nextLong()));
        counts.put(name, 1 + random.nextInt(random.nextInt(6) == 0 ? 120 : 10));
        initialize(name);
    }

    /** Some topics have no partition that may be assigned, some have not all. */
    private void initialize(String name) {
        int what = random.nextInt(8), count = what == 0 ? random.nextInt(counts.get(name)) : counts.get(name);
        for (int partition = 0; what != 1 && partition < count; partition++)
            initialized.computeIfAbsent(topics.get(name), key -> new HashSet<>()).add(partition);
    }

    private List<String> someTopics() {
        List<String> chosen = new ArrayList<>(topics.keySet());
        chosen.removeIf(topic -> random.nextInt(3) == 0);
        if (chosen.isEmpty() || random.nextInt(10) == 0)
            chosen.add("missing");
        return chosen;
    }

    private ShareGroupMember newMember() {
        String id = random.nextInt(3) == 0 ? "m" + random.nextInt(1000) : new Uuid(random.nextLong(), random.nextLong()).toString();
        return member(id, alike ? common : someTopics());
    }

    private ShareGroupMember member(String id, List<String> names) {
        wanted.put(id, names);
        return new ShareGroupMember.Builder(id).setSubscribedTopicNames(names).build();
    }

    private void put(ShareGroupMember member) {
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
    private ShareGroupMember change() {
        int what = random.nextInt(10);
        String one = joinOrder.isEmpty() ? null : joinOrder.get(random.nextInt(joinOrder.size()));
        if (one == null || what < 3)
            return newMember();
        if (what < 5 && joinOrder.size() > 1)
            remove(one);
        else if (what == 5)
            for (int left = random.nextInt(joinOrder.size()); left > 0; left--)
                remove(joinOrder.get(random.nextInt(joinOrder.size())));
        else if (what == 6) {
            List<String> names = someTopics();
            if (!alike)
                return member(one, names);
            common = names;
            joinOrder.forEach(id -> members.put(id, member(id, names)));
        } else if (what == 7) {
            String grown = topics.firstKey();
            counts.merge(grown, 1 + random.nextInt(8), Integer::sum);
            initialize(grown);
        } else if (what == 8 && topics.size() > 1) {
            initialized.remove(topics.get(topics.lastKey()));
            topics.remove(topics.lastKey());
        } else
            for (int left = random.nextInt(large ? 20 : 4); left > 0; left--)
                put(newMember());
        return null;
    }

    private MetadataImage image() {
        MetadataDelta delta = new MetadataDelta(MetadataImage.EMPTY);
        topics.forEach((name, id) -> {
            delta.replay(new TopicRecord().setTopicId(id).setName(name));
            for (int i = 0; i < counts.get(name); i++)
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(i).setReplicas(List.of(0)));
        });
        return delta.apply(new MetadataProvenance(0, 0, 0L, true));
    }

    private List<CoordinatorRecord> assign(ShareGroupMember updated, boolean homogeneous) {
        // Kafka's coordinator has stored all members before it computes.
        ShareTargetAssignmentBuilder builder = new ShareTargetAssignmentBuilder("group", 1, new SimpleAssignor())
            .withMembers(members).withTargetAssignment(target).withInvertedTargetAssignment(Map.of()).withMetadataImage(image())
            .withTopicAssignablePartitionsMap(initialized)
            .withSubscriptionType(homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS);
        if (updated != null)
            builder.addOrUpdateMember(updated.memberId(), updated);
        List<CoordinatorRecord> records = builder.build().records();
        return records.subList(0, records.size() - 1);
    }

    private void rebalance(ShareGroupMember updated) {
        if (updated != null)
            put(updated);  // as ShareGroup.getOrMaybeCreateMember() does
        Map<String, ShareGroupMember> rows = new LinkedHashMap<>();
        joinOrder.forEach(id -> rows.put(id, members.get(id)));
        Set<Set<String>> subscriptions = rows.values().stream().map(ShareGroupMember::subscribedTopicNames).collect(Collectors.toSet());
        boolean homogeneous = subscriptions.size() <= 1;
        List<String> before = new ArrayList<>();
        rows.forEach((id, member) -> before.add("[" + quoted(id) + ",null,null," + quoted(String.join(" ", wanted.get(id))) + ","
            + quoted(values.containsKey(id) ? text(values.get(id)) : null) + "]"));
        List<CoordinatorRecord> records = null;
        try {
            records = assign(updated, homogeneous);
        } catch (PartitionAssignorException error) {
            // All members have more than their share, and partitions are left: the group keeps its assignment.
        }
        List<String> after = new ArrayList<>();
        for (CoordinatorRecord record : records == null ? List.<CoordinatorRecord>of() : records) {
            String id = ((ShareGroupTargetAssignmentMemberKey) record.key()).memberId();
            ShareGroupTargetAssignmentMemberValue value = (ShareGroupTargetAssignmentMemberValue) record.value().message();
            after.add("[" + quoted(id) + "," + quoted(text(value)) + "]");
            values.put(id, value);
            target.put(id, Assignment.fromRecord(value));
        }
        System.out.println("{\"assignor\":\"simple\",\"homogeneous\":" + homogeneous + ",\"topics\":{"
            + topics.keySet().stream().map(name -> quoted(name) + ":[" + quoted(topics.get(name).toString()) + ","
            + counts.get(name) + "]").collect(Collectors.joining(",")) + "},\"assignable\":" + assignable()
            + ",\"stored\":" + joinOrder.size() + ",\"most\":" + most + ",\"members\":[" + String.join(",", before)
            + "],\"records\":" + (records == null ? "null" : "[" + String.join(",", after) + "]") + "}");
    }

    private String assignable() {
        return "{" + topics.entrySet().stream().map(entry -> quoted(entry.getKey()) + ":"
            + initialized.getOrDefault(entry.getValue(), Set.of())).collect(Collectors.joining(",")) + "}";
    }

    private static String text(ShareGroupTargetAssignmentMemberValue value) {
        return value.topicPartitions().stream().map(topic -> topic.topicId() + ":" + topic.partitions().stream().map(String::valueOf)
            .collect(Collectors.joining(","))).collect(Collectors.joining(" "));
    }

    private static String quoted(String text) {
        return text == null ? "null" : '"' + text + '"';
    }
}
