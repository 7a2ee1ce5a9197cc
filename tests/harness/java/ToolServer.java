import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM.
 *
 * A request is a line: a class, the text of the tool's stdin, and its arguments, each in base64 after a dot. The answer is a
 * line: the exit code, stdout and stderr, likewise encoded.
 */
public class ToolServer {
    private static final Switch OUT = new Switch(), ERR = new Switch();
    private static final Source IN = new Source();

    private static class Switch extends OutputStream {
        private volatile OutputStream target = OutputStream.nullOutputStream();

        @Override
        public void write(int octet) throws IOException {
            target.write(octet);
        }

        @Override
        public void write(byte[] octets, int start, int length) throws IOException {
            target.write(octets, start, length);
        }
    }

    private static class Source extends InputStream {
        private volatile InputStream source = InputStream.nullInputStream();

        @Override
        public int read() throws IOException {
            return source.read();
        }

        @Override
        public int read(byte[] octets, int start, int length) throws IOException {
            return source.read(octets, start, length);
        }
    }

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        // Scala keeps the stream that it finds first.
        System.setOut(new PrintStream(OUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERR, true, "UTF-8"));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setIn(IN);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ");
            IN.source = new ByteArrayInputStream(decoded(words[1]));
            String[] arguments = new String[words.length - 2];
            for (int n = 2; n < words.length; n++) {
                arguments[n - 2] = new String(decoded(words[n]), StandardCharsets.UTF_8);
            }
            answers.println(run(Class.forName(words[0]), arguments));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String run(Class<?> tool, String[] arguments) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
        OUT.target = out;
        ERR.target = err;
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        // A tool must not continue after an exit, and must not catch an exception in its place: its thread waits for ever.
        Exit.setExitProcedure((code, message) -> {
            ended.complete(code);
            new CompletableFuture<Void>().join();
        });
        Thread thread = new Thread(() -> {
            try {
                tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
                ended.complete(0);
            } catch (InvocationTargetException error) {
                System.err.print("Exception in thread \"main\" ");
                error.getCause().printStackTrace();
                ended.complete(1);
            } catch (ReflectiveOperationException error) {
                ended.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        int code = ended.get();
        System.out.flush();
        System.err.flush();
        return code + " ." + encoded(out) + " ." + encoded(err);
    }

    private static byte[] decoded(String word) {
        return Base64.getDecoder().decode(word.substring(1));
    }

    private static String encoded(ByteArrayOutputStream text) {
        return Base64.getEncoder().encodeToString(text.toByteArray());
    }
}
