// A small application that answers docs/app.openapi.yaml (kv, connect and webapp): Jetty, and JDBC with or without HikariCP.
// `java -cp … App.java application.properties PORT` runs it.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.sql.*;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.*;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.*;
import org.eclipse.jetty.util.*;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

public final class App extends Handler.Abstract {
    /** Where a page takes its connection to the database from; the page closes it. */
    interface Connections {
        Connection get() throws SQLException;
    }

    record Answer(int status, String type, String body) {
        static Answer record(long key, String data) {
            // All answers are equally long: ab counts an answer of another length as a failure.
            return new Answer(200, DATA, "%020d\n%s".formatted(key, data));
        }
    }

    /** An answer that is not 200. */
    static final class Refusal extends Exception {
        final int status;

        Refusal(int status, String reason) {
            super(reason);
            this.status = status;
        }
    }

    private static final String TEXT = "text/plain; charset=utf-8";
    private static final String DATA = "application/octet-stream";
    private static final Set<String> POSTS = Set.of("/kv/write", "/webapp/request");
    private static final Set<String> GETS = Set.of("/health", "/kv", "/kv/read", "/kv/count", "/connect", "/connect/read",
        "/connect/new", "/webapp", "/webapp/count", "/webapp/log", "/webapp/user");
    private static final Pattern KEY = Pattern.compile("key=(\\d+)");
    private static final Pattern OWN_HOST = Pattern.compile("localhost|[0-9.]+|\\[.*\\]", Pattern.CASE_INSENSITIVE);

    private final Properties settings;
    private final String prefix;
    private final Connections held;
    private final Connections anew;
    /** Expressions of a time from microseconds since 1970 UTC, and back. */
    private final String timeOf;
    private final String micros;
    private final String userFields;
    /** Rises with the clock, and never repeats within this process, which alone adds records. */
    private final AtomicLong lastKey = new AtomicLong(ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));

    App(Properties settings, Connections held, Connections anew) {
        this.settings = settings;
        this.held = held;
        this.anew = anew;
        prefix = settings.getProperty("prefix");
        var postgres = settings.getProperty("jdbc.url").startsWith("jdbc:postgresql:");
        timeOf = postgres ? "to_timestamp(? / 1000000.0)"
            : "timestampadd(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')";
        micros = postgres ? "(extract(epoch FROM %s) * 1000000)::bigint"
            : "timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', %s)";
        userFields = "id, name, full_name, email, postal_code, address, version, " + micros.formatted("updated");
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        Answer answer;
        try {
            answer = answer(request, response);
        } catch (Refusal refusal) {
            answer = new Answer(refusal.status, TEXT, refusal.getMessage() + "\n");
        } catch (Exception error) {
            // The database is gone, full or too slow, or refused the statement.
            var reason = String.valueOf(error.getMessage()).replaceAll("[\r\n]+", " ");
            answer = new Answer(503, TEXT, settings.getProperty("engine") + ": " + reason + "\n");
            response.getHeaders().put(HttpHeader.RETRY_AFTER, "1");
        }
        response.setStatus(answer.status());
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, answer.type());
        Content.Sink.write(response, true, answer.body(), callback);
        return true;
    }

    private Answer answer(Request request, Response response) throws Exception {
        if (!OWN_HOST.matcher(Request.getServerName(request)).matches()) {
            throw new Refusal(421, "this host name is not accepted; use 127.0.0.1 or localhost");
        }
        if (!settings.getProperty("authorization").equals(request.getHeaders().get(HttpHeader.AUTHORIZATION))) {
            throw new Refusal(401, "user and password are in the URL that 'kurabe up stack' printed");
        }
        var path = Request.getPathInContext(request);
        var method = POSTS.contains(path) ? "POST" : "GET";
        if (method.equals("GET") && !GETS.contains(path)) {
            throw new Refusal(404, "there is no such page");
        }
        var experiment = path.split("/")[1];
        var about = settings.getProperty(experiment + ".about");
        if (!path.equals("/health") && about == null) {
            throw new Refusal(501, experiment + " is not served: its data is not loaded");
        }
        if (!request.getMethod().equals(method)) {
            response.getHeaders().put(HttpHeader.ALLOW, method);
            throw new Refusal(405, "this page is requested by " + method);
        }
        var key = path.equals("/webapp/request") ? null : key(request.getHttpURI().getQuery());
        return switch (path) {
            case "/health" -> new Answer(200, TEXT, single("SELECT 'ok'") + "\n");
            // Records 1 to `records` are in one table, those that were added in another.
            case "/kv/read" -> read(held, experiment,
                key != null && Long.compareUnsigned(key, number("kv.records")) > 0 ? "kv_w" : "kv_r", key);
            case "/kv/write" -> write();
            case "/kv/count" -> count("kv_w");
            case "/connect/read" -> read(held, experiment, experiment, key);
            case "/connect/new" -> read(anew, experiment, experiment, key);
            case "/webapp/request" -> webapp(Request.extractQueryParameters(request));
            case "/webapp/count" -> count("webapp_log");
            case "/webapp/log" -> show("log", "webapp_log", "id, user_id, ip, " + micros.formatted("at"), key);
            case "/webapp/user" -> show("user", "webapp_users", userFields, key);
            default -> new Answer(200, "application/json", about + "\n");
        };
    }

    /** The record that a query names, as an unsigned number; null where it names none. */
    private static Long key(String query) throws Refusal {
        if (query == null || query.isEmpty()) {
            return null;
        }
        var found = KEY.matcher(query);
        try {
            return Long.parseUnsignedLong(found.matches() ? found.group(1) : "");
        } catch (NumberFormatException noKey) {
            throw new Refusal(400, "the only parameter is key, a whole number: ?key=17");
        }
    }

    private static PreparedStatement prepare(Connection connection, String sql, Object... parameters) throws SQLException {
        var statement = connection.prepareStatement(sql);
        for (int at = 0; at < parameters.length; at++) {
            statement.setObject(at + 1, parameters[at]);
        }
        return statement;
    }

    /** Executes a query; each row is its fields with tabs between them. */
    private static List<String> rows(Connection connection, String sql, Object... parameters) throws SQLException {
        try (var statement = prepare(connection, sql, parameters); var rows = statement.executeQuery()) {
            var all = new ArrayList<String>();
            var fields = new String[rows.getMetaData().getColumnCount()];
            while (rows.next()) {
                for (int at = 0; at < fields.length; at++) {
                    fields[at] = rows.getString(at + 1);
                }
                all.add(String.join("\t", fields));
            }
            return all;
        }
    }

    /** The row with a key. Keys are signed in the database, which has none below zero. */
    private String row(Connections connections, String fields, String table, long key) throws Exception {
        try (var connection = connections.get()) {
            var rows = rows(connection, "SELECT " + fields + " FROM " + prefix + table + " WHERE id = ?", key);
            if (rows.isEmpty()) {
                throw new Refusal(404, "there is no record " + Long.toUnsignedString(key));
            }
            return rows.get(0);
        }
    }

    /** Executes a statement that adds or changes one row. */
    private static void change(Connection connection, String sql, Object... parameters) throws SQLException {
        try (var statement = prepare(connection, sql, parameters)) {
            var rows = statement.executeUpdate();
            if (rows != 1) {
                throw new SQLException("the database acknowledged " + rows + " rows instead of 1");
            }
        }
    }

    /** The only field of the only row of a query. */
    private String single(String sql) throws SQLException {
        try (var connection = held.get()) {
            return rows(connection, sql).get(0);
        }
    }

    /** Reads the row that the key names, or one that is drawn uniformly. */
    private Answer read(Connections connections, String experiment, String table, Long named) throws Exception {
        var key = named != null ? named : ThreadLocalRandom.current().nextLong(1, number(experiment + ".records") + 1);
        return Answer.record(key, row(connections, "data", table, key));
    }

    private Answer write() throws SQLException, NoSuchAlgorithmException {
        var key = lastKey.incrementAndGet();
        var md5 = MessageDigest.getInstance("MD5");
        var data = new StringBuilder();
        for (int part = 1; part <= 3; part++) {
            var text = "%d:%d:%d".formatted(number("kv.seed"), key, part);
            data.append(HexFormat.of().formatHex(md5.digest(text.getBytes(StandardCharsets.US_ASCII))));
        }
        try (var connection = held.get()) {
            change(connection, "INSERT INTO " + prefix + "kv_w (id, data) VALUES (?, ?)", key, data.toString());
        }
        return Answer.record(key, data.toString());
    }

    private Answer count(String table) throws SQLException {
        return Answer.record(Long.parseLong(single("SELECT count(*) FROM " + prefix + table)), "");
    }

    private Answer show(String what, String table, String fields, Long key) throws Exception {
        return new Answer(200, DATA, what + "\t" + row(held, fields, table, key == null ? 0 : key) + "\n");
    }

    /** Logs a user in and writes the log; changes the user and searches the postal codes if the input says so. */
    private Answer webapp(Fields input) throws Exception {
        for (var name : List.of("name", "password", "ip", "at")) {
            if (input.getValue(name) == null) {
                throw new Refusal(400, "the parameter " + name + " is missing");
            }
        }
        try (var connection = held.get()) {
            var found = rows(connection, "SELECT " + userFields + " FROM " + prefix + "webapp_users "
                + "WHERE name = ? AND password = ?", input.getValue("name"), input.getValue("password"));
            if (found.size() != 1) {
                throw new Refusal(403, "no user has this name and password");
            }
            var id = Long.parseLong(found.get(0).substring(0, found.get(0).indexOf('\t')));
            var line = lastKey.incrementAndGet();
            var at = Long.parseLong(input.getValue("at"));
            change(connection, "INSERT INTO " + prefix + "webapp_log (id, user_id, ip, at) VALUES (?, ?, ?, " + timeOf + ")",
                line, id, input.getValue("ip"), at);
            var body = new StringBuilder("user\t%s\n".formatted(found.get(0)));
            body.append("log\t%d\t%d\t%s\t%d\n".formatted(line, id, input.getValue("ip"), at));
            if (input.getValue("version") != null) {
                var version = Long.parseLong(input.getValue("version"));
                change(connection, "UPDATE " + prefix + "webapp_users SET email = ?, postal_code = ?, address = ?, version = ?, "
                    + "updated = " + timeOf + " WHERE id = ?", input.getValue("email"), input.getValue("postal_code"),
                    input.getValue("address"), version, Long.parseLong(input.getValue("updated")), id);
                body.append("changed\t").append(version).append('\n');
            }
            var digits = input.getValue("prefix");
            if (digits != null) {
                // Codes have seven digits.
                var towns = rows(connection, "SELECT code, prefecture, city, town, kana FROM " + prefix + "webapp_codes "
                    + "WHERE code BETWEEN ? AND ? ORDER BY code, number", digits + "00", digits + "99");
                body.append("found\t").append(digits).append('\t').append(towns.size()).append('\n');
                towns.forEach(town -> body.append(town).append('\n'));
            }
            return new Answer(200, DATA, body.toString());
        }
    }

    private long number(String name) {
        return Long.parseLong(settings.getProperty(name));
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(reader);
        }
        var workers = Integer.parseInt(settings.getProperty("workers"));
        var url = settings.getProperty("jdbc.url");
        var user = settings.getProperty("jdbc.user");
        var password = settings.getProperty("jdbc.password");
        Connections anew = () -> DriverManager.getConnection(url, user, password);
        var held = anew;
        if (settings.getProperty("pool").equals("hikari")) {
            var config = new HikariConfig();
            config.setJdbcUrl(url);
            config.setUsername(user);
            config.setPassword(password);
            config.setMaximumPoolSize(workers);
            held = new HikariDataSource(config)::getConnection;
        }
        // One thread accepts and one selects; the others serve a request each.
        var threads = new QueuedThreadPool(workers + 2, workers + 2);
        threads.setReservedThreads(0);
        var server = new Server(threads);
        var connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[1]));
        connector.setAcceptQueueSize(4096);
        server.addConnector(connector);
        server.setHandler(new App(settings, held, anew));
        server.start();
        server.join();
    }
}
