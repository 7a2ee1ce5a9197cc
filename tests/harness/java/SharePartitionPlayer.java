import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.server.ReplicaManager;
import kafka.server.share.SharePartition;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Runs Kafka's SharePartition step by step: a command on each line of stdin, and on stdout its result and the state after it, as JSON.
 *
 * The share coordinator is a stub that takes every write, or refuses it with an error. There are no fetches that wait.
 */
public class SharePartitionPlayer {
    private static final TopicIdPartition PARTITION =
        new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("t", 0));
    private static final String EMPTY_MEMBER = Uuid.ZERO_UUID.toString();

    private final Clock clock = new Clock();
    private final Store store = new Store();
    private SharePartition partition;

    public static void main(String[] arguments) throws Exception {
        SharePartitionPlayer player = new SharePartitionPlayer();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(player.play(line.split(" ")));
            System.out.flush();
        }
    }

    private String play(String[] words) throws Exception {
        store.writes.clear();
        String result = switch (words[0]) {
            case "new" -> create(words);
            case "acquire" -> acquire(words);
            case "ack" -> acknowledge(words);
            case "release" -> error(partition.releaseAcquiredRecords(words[1]));
            case "advance" -> clock.advance(Long.parseLong(words[1]));
            case "start" -> call("updateCacheAndOffsets", Long.parseLong(words[1])) + "";
            case "fail" -> store.fail(Short.parseShort(words[1]));
            default -> throw new IllegalArgumentException(words[0]);
        };
        String can = call("canAcquireRecords").toString();
        return "{\"result\": " + result + ", \"can\": " + can + ", \"next\": " + partition.nextFetchOffset() + ", \"start\": "
            + call("startOffset") + ", \"end\": " + call("endOffset") + ", \"batches\": " + batches() + ", \"writes\": " + store.writes + "}";
    }

    private String create(String[] words) throws Exception {
        clock.tasks.clear();
        store.failure = 0;
        store.startOffset = Long.parseLong(words[4]);
        store.states = Arrays.stream(words).skip(5).map(word -> {
            long[] n = numbers(word, ":");
            return new PersisterStateBatch(n[0], n[1], (byte) n[2], (short) n[3]);
        }).toList();
        Constructor<?> made = Arrays.stream(SharePartition.class.getDeclaredConstructors())
            .filter(each -> each.getParameterCount() == 12).findFirst().orElseThrow();
        made.setAccessible(true);
        partition = (SharePartition) made.newInstance("g", PARTITION, 0, Integer.parseInt(words[1]), Integer.parseInt(words[2]),
            Integer.parseInt(words[3]), clock, clock, store, (ReplicaManager) null, new GroupConfigManager(Map.of()), null);
        return error(partition.maybeInitialize());
    }

    private String acquire(String[] words) {
        Optional<List<FetchResponseData.AbortedTransaction>> aborted = words[6].equals("-") ? Optional.empty() : Optional.of(
            Arrays.stream(words[6].split(",")).map(word -> {
                long[] n = numbers(word, ":");
                return new FetchResponseData.AbortedTransaction().setProducerId(n[0]).setFirstOffset(n[1]);
            }).toList());
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(words[7])));
        FetchPartitionData read = new FetchPartitionData(Errors.NONE, 1 << 20, 0, records, Optional.empty(), OptionalLong.empty(),
            aborted, OptionalInt.empty(), false);
        ShareAcquiredRecords found = partition.acquire(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]),
            Long.parseLong(words[4]), read, words[5].equals("1") ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK);
        return found.acquiredRecords().stream()
            .map(each -> "[" + each.firstOffset() + ", " + each.lastOffset() + ", " + each.deliveryCount() + "]")
            .collect(Collectors.joining(", ", "[", "]"));
    }

    /** "null" if Kafka fails, as its request would: the start offset is in no batch in flight. */
    private String acknowledge(String[] words) {
        try {
            return error(partition.acknowledge(words[1], acknowledgements(words)));
        } catch (NullPointerException failed) {
            return "null";
        }
    }

    private static List<ShareAcknowledgementBatch> acknowledgements(String[] words) {
        return Arrays.stream(words).skip(2).map(word -> {
            String[] parts = word.split(":");
            List<Byte> types = Arrays.stream(parts[2].split(",")).map(Byte::valueOf).toList();
            return new ShareAcknowledgementBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]), types);
        }).toList();
    }

    private static long[] numbers(String word, String separator) {
        return Arrays.stream(word.split(separator)).mapToLong(Long::parseLong).toArray();
    }

    private static String error(CompletableFuture<Void> done) {
        if (!done.isDone())
            return "null";
        try {
            done.join();
            return "[0, null]";
        } catch (CompletionException failed) {
            String message = failed.getCause().getMessage();
            return "[" + Errors.forException(failed.getCause()).code() + ", " + (message == null ? "null" : "\"" + message + "\"") + "]";
        }
    }

    private String batches() throws Exception {
        List<String> found = new ArrayList<>();
        for (Object batch : ((Map<?, ?>) call("cachedState")).values()) {
            Object each = value(batch, "offsetState");
            List<String> states = new ArrayList<>();
            if (each == null)
                states.add(state(value(batch, "batchState"), value(batch, "batchDeliveryCount"), value(batch, "batchMemberId")));
            else
                for (Object one : ((Map<?, ?>) each).values())
                    states.add(state(value(one, "state"), field(one, "deliveryCount"), value(one, "memberId")));
            found.add("[" + value(batch, "firstOffset") + ", " + value(batch, "lastOffset") + ", " + (each == null) + ", " + states + "]");
        }
        return found.toString();
    }

    private static String state(Object state, Object count, Object member) throws Exception {
        return "[" + field(state, "id") + ", " + count + ", \"" + (member.equals(EMPTY_MEMBER) ? "" : member) + "\"]";
    }

    private Object call(String name, Object... given) throws Exception {
        Method method = Arrays.stream(SharePartition.class.getDeclaredMethods())
            .filter(each -> each.getName().equals(name) && each.getParameterCount() == given.length).findFirst().orElseThrow();
        method.setAccessible(true);
        try {
            return method.invoke(partition, given);
        } catch (InvocationTargetException failed) {
            throw new IllegalStateException(failed.getCause());
        }
    }

    private static Object value(Object of, String name) throws Exception {
        Method method = of.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    private static Object field(Object of, String name) throws Exception {
        Class<?> owner = of instanceof Enum<?> constant ? constant.getDeclaringClass() : of.getClass();
        var found = owner.getDeclaredField(name);
        found.setAccessible(true);
        return found.get(of);
    }

    /** Time passes only by `advance`, which runs the timers that are due. */
    private static class Clock implements Time, Timer {
        private final List<TimerTaskEntry> tasks = new ArrayList<>();
        private long now = 1_000_000;

        String advance(long ms) {
            now += ms;
            List<TimerTaskEntry> due = tasks.stream().filter(each -> each.expirationMs <= now)
                .sorted(Comparator.comparingLong(each -> each.expirationMs)).toList();
            tasks.removeAll(due);
            for (TimerTaskEntry entry : due) {
                try {
                    if (!entry.timerTask.isCancelled())
                        entry.timerTask.run();
                } catch (NullPointerException noFetchWaits) {
                    // It would wake fetches.
                }
            }
            return "null";
        }

        @Override
        public void add(TimerTask task) {
            tasks.add(new TimerTaskEntry(task, now + task.delayMs));
        }

        @Override
        public boolean advanceClock(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public int size() {
            return tasks.size();
        }

        @Override
        public void close() {}

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long hiResClockMs() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static class Store implements Persister {
        private final List<String> writes = new ArrayList<>();
        private List<PersisterStateBatch> states = List.of();
        private long startOffset;
        private short failure;

        String fail(short code) {
            failure = code;
            return "null";
        }

        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            PartitionAllData row = PartitionFactory.newPartitionAllData(0, 1, startOffset, (short) 0, "", states);
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PARTITION.topicId(), List.of(row)))).build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData asked = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            writes.add("[" + asked.startOffset() + ", " + asked.stateBatches().stream().map(each -> "[" + each.firstOffset() + ", "
                + each.lastOffset() + ", " + each.deliveryState() + ", " + each.deliveryCount() + "]").toList() + "]");
            PartitionErrorData row = PartitionFactory.newPartitionErrorData(0, failure, "refused");
            return CompletableFuture.completedFuture(new WriteShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(PARTITION.topicId(), List.of(row)))).build());
        }

        @Override
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void stop() {}
    }
}
