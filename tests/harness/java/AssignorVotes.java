import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Votes of members for the assignor of their group, one group per line: for each vote `MEMBER:ASSIGNOR`, the assignor of the next
 * target, and the one that is described after it; `-` is none.
 *
 * Arguments: the seed of the first group, and how many groups.
 */
public class AssignorVotes {
    private static final String[] ASSIGNORS = {"uniform", "range", null};

    public static void main(String[] arguments) {
        long first = Long.parseLong(arguments[0]);
        for (long seed = first; seed < first + Integer.parseInt(arguments[1]); seed++)
            System.out.println(String.join(" ", votes(new Random(seed * 0x9E3779B97F4A7C15L))));
    }

    private static List<String> votes(Random random) {
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        ConsumerGroup group = new ConsumerGroup(registry, "g", new GroupCoordinatorMetricsShard(registry, Map.of(), new TopicPartition("t", 0)));
        List<String> out = new ArrayList<>();
        for (int left = 4 + random.nextInt(8); left > 0; left--) {
            String id = "m" + random.nextInt(6), asked = ASSIGNORS[random.nextInt(3)];
            ConsumerGroupMember before = group.hasMember(id) ? group.getOrMaybeCreateMember(id, false) : null;
            ConsumerGroupMember after = new ConsumerGroupMember.Builder(id).setServerAssignorName(asked).build();
            String next = group.computePreferredServerAssignor(before, after).orElse("-");
            group.updateMember(after);
            out.add(id + ":" + (asked == null ? "-" : asked) + ":" + next + ":" + group.preferredServerAssignor().orElse("-"));
        }
        return out;
    }
}
