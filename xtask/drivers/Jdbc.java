// Two connections of one process by JDBC, one after the other. The arguments are the driver's name in its URL, its
// properties, and a statement. `java -cp DRIVER.jar Jdbc.java mysql useLocalSessionState=true 'SELECT 42'`.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

class Jdbc {
    public static void main(String[] args) throws SQLException {
        var env = System.getenv();
        var user = env.get("KURABE_USER");
        var url = "jdbc:%s://%s:%s/%s?%s".formatted(
            args[0], env.get("KURABE_HOST"), env.get("KURABE_PORT"), env.get("KURABE_DATABASE"), args[1]);
        for (int n = 0; n < 2; n++) {
            try (Connection connection = DriverManager.getConnection(url, user, env.getOrDefault("KURABE_PASSWORD", ""));
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery(args[2])) {
                if (!rows.next() || rows.getInt(1) != 42) {
                    throw new SQLException("the answer is wrong");
                }
            }
        }
    }
}
