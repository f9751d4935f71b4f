import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;

/**
 * What pgJDBC finds: prepared statements on their way from text to binary, batches, transactions,
 * COPY, errors and the metadata of the catalog. What it prints has to be the same of every server.
 */
public class WithJdbc {
    interface Call {
        Object call() throws Exception;
    }

    static void say(String label, Call call) {
        try {
            System.out.println(label + " " + call.call());
        } catch (SQLException error) {
            String message = error.getMessage().split("\n")[0];
            System.out.println(label + " " + error.getSQLState() + " " + message);
        } catch (Exception error) {
            System.out.println(label + " " + error);
        }
    }

    static String rows(ResultSet results, String... columns) throws SQLException {
        StringBuilder out = new StringBuilder();
        while (results.next()) {
            List<String> row = new ArrayList<>();
            for (String column : columns) {
                row.add(String.valueOf(results.getObject(column)));
            }
            out.append("\n  ").append(String.join(" | ", row));
        }
        results.close();
        return out.toString();
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/postgres?user=postgres&prepareThreshold=3";
        try (Connection connection = DriverManager.getConnection(url)) {
            Statement statement = connection.createStatement();
            statement.execute("DROP TABLE IF EXISTS jdbc_account");
            statement.execute("CREATE TABLE jdbc_account (id int, branch int, owner varchar(20) NOT NULL DEFAULT 'x',"
                + " balance numeric(12, 2), opened timestamptz, day date, active boolean, rate float8, picture bytea,"
                + " tags text[], PRIMARY KEY (branch, id))");
            types(connection);
            statements(connection);
            metadata(connection);
            statement.execute("DROP TABLE jdbc_account");
        }
    }

    static void types(Connection connection) throws SQLException {
        Object[] values = {true, 7, 1L << 40, 1.5f, 0.1, new BigDecimal("12.340"), "it's", new byte[] {0, -1},
            LocalDate.of(2024, 2, 29), LocalDateTime.of(2024, 2, 29, 12, 34), UUID.fromString("00000000-0000-0000-0000-000000000005")};
        for (Object value : values) {
            say(value.getClass().getSimpleName(), () -> {
                PreparedStatement prepared = connection.prepareStatement("SELECT ?");
                Object found = null;
                // From the third run on the statement has a name, and values come as bytes.
                for (int run = 0; run < 6; run++) {
                    prepared.setObject(1, value);
                    ResultSet results = prepared.executeQuery();
                    results.next();
                    found = value instanceof byte[] ? Arrays.toString(results.getBytes(1))
                        : results.getObject(1) + " " + results.getMetaData().getColumnTypeName(1);
                }
                return found;
            });
        }
        say("array", () -> {
            PreparedStatement prepared = connection.prepareStatement("SELECT ?::int[] || 4");
            prepared.setArray(1, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
            ResultSet results = prepared.executeQuery();
            results.next();
            return results.getArray(1);
        });
    }

    static void statements(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_account (id, branch, owner, balance) VALUES (?, ?, ?, ?)");
        for (int id = 0; id < 9; id++) {
            insert.setInt(1, id);
            insert.setInt(2, id % 2);
            insert.setString(3, "owner " + id);
            insert.setBigDecimal(4, new BigDecimal(id).movePointLeft(1));
            insert.addBatch();
        }
        say("batch", () -> Arrays.toString(insert.executeBatch()));
        connection.commit();
        Savepoint savepoint = connection.setSavepoint("before");
        say("unique", () -> connection.createStatement().executeUpdate("INSERT INTO jdbc_account VALUES (1, 1)"));
        say("aborted", () -> connection.createStatement().executeQuery("SELECT 1"));
        connection.rollback(savepoint);
        say("null", () -> connection.createStatement().executeUpdate("INSERT INTO jdbc_account VALUES (1, 7, NULL)"));
        connection.rollback();
        say("cursor", () -> {
            PreparedStatement select = connection.prepareStatement("SELECT id FROM jdbc_account ORDER BY id");
            select.setFetchSize(2);
            ResultSet results = select.executeQuery();
            List<Integer> found = new ArrayList<>();
            while (results.next()) {
                found.add(results.getInt(1));
            }
            return found;
        });
        connection.commit();
        connection.setAutoCommit(true);
        say("keys", () -> {
            PreparedStatement keys = connection.prepareStatement("INSERT INTO jdbc_account (id, branch) VALUES (50, 1)", new String[] {"owner"});
            keys.executeUpdate();
            return rows(keys.getGeneratedKeys(), "owner");
        });
        PGConnection own = connection.unwrap(PGConnection.class);
        say("copy in", () -> own.getCopyAPI().copyIn("COPY jdbc_account (id, branch, owner) FROM STDIN", new StringReader("70\t3\ta\n71\t3\tb\n")));
        say("copy out", () -> {
            StringWriter out = new StringWriter();
            own.getCopyAPI().copyOut("COPY (SELECT id, owner FROM jdbc_account WHERE branch = 3 ORDER BY 1) TO STDOUT", out);
            return out.toString().replace("\n", ";").replace("\t", ",");
        });
        say("valid", () -> connection.isValid(5));
        say("isolation", () -> {
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            return connection.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE;
        });
        say("read only", () -> {
            connection.setReadOnly(true);
            try {
                return connection.createStatement().executeUpdate("DELETE FROM jdbc_account");
            } finally {
                connection.setReadOnly(false);
            }
        });
    }

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        say("product", () -> data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion());
        say("schemas", () -> rows(data.getSchemas(), "TABLE_SCHEM"));
        say("tables", () -> rows(data.getTables(null, "public", "jdbc%", new String[] {"TABLE"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"));
        say("types of tables", () -> rows(data.getTableTypes(), "TABLE_TYPE"));
        say("columns", () -> rows(data.getColumns(null, "public", "jdbc_account", null), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE",
            "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "ORDINAL_POSITION", "IS_NULLABLE", "IS_AUTOINCREMENT"));
        say("primary", () -> rows(data.getPrimaryKeys(null, "public", "jdbc_account"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
        say("indexes", () -> rows(data.getIndexInfo(null, "public", "jdbc_account", false, false), "INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC"));
        say("imported", () -> rows(data.getImportedKeys(null, "public", "jdbc_account"), "FK_NAME"));
        say("exported", () -> rows(data.getExportedKeys(null, "public", "jdbc_account"), "FK_NAME"));
        say("best row", () -> rows(data.getBestRowIdentifier(null, "public", "jdbc_account", 2, true), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME"));
        say("functions", () -> rows(data.getFunctions(null, "pg_catalog", "initcap"), "FUNCTION_NAME", "FUNCTION_TYPE"));
        say("arguments", () -> rows(data.getFunctionColumns(null, "pg_catalog", "initcap", null), "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME"));
        say("procedures", () -> rows(data.getProcedures(null, "public", null), "PROCEDURE_NAME"));
        say("rights", () -> rows(data.getTablePrivileges(null, "public", "jdbc_account"), "GRANTEE", "PRIVILEGE"));
        say("catalogs", () -> rows(data.getCatalogs(), "TABLE_CAT").contains("postgres"));
        say("user types", () -> rows(data.getUDTs(null, "public", "jdbc%", null), "TYPE_NAME", "DATA_TYPE"));
        say("length of a name", data::getMaxColumnNameLength);
        say("keywords", () -> data.getSQLKeywords().isEmpty());
        say("result", () -> {
            ResultSetMetaData columns = connection.createStatement().executeQuery("SELECT owner AS o, balance, count(*) FROM jdbc_account GROUP BY 1, 2 LIMIT 0").getMetaData();
            StringBuilder out = new StringBuilder();
            for (int place = 1; place <= columns.getColumnCount(); place++) {
                out.append(columns.getColumnLabel(place)).append(' ').append(columns.getColumnTypeName(place)).append(' ')
                    .append(columns.getPrecision(place)).append(' ').append(columns.getScale(place)).append(' ')
                    .append(columns.isNullable(place)).append("; ");
            }
            return out;
        });
    }
}
