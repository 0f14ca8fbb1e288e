//! Sessions in which the server refuses to write.

use super::common::{connect, open};
use super::methods::{administer_by, has_mariadb_program};
use crate::read_only::{check, execute, reader};
use kurabe_core::ErrorKind;
use kurabe_testbed::testing;

const POSTGRES_MADE: &[&str] = &[
    "CREATE TABLE theirs (id bigint PRIMARY KEY, n bigint, j jsonb)",
    "INSERT INTO theirs VALUES (1, 5, '{\"a\": 1}'), (2, 6, '{}')",
    "CREATE FUNCTION charge() RETURNS bigint LANGUAGE sql AS 'UPDATE theirs SET n = n + 1 RETURNING n'",
    "CREATE FUNCTION twice(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1 * 2'",
    "CREATE FUNCTION unlock() RETURNS text LANGUAGE sql AS \
     'SELECT set_config(''default_transaction_read_only'', ''off'', false)'",
    "CREATE SEQUENCE numbers",
];

#[test]
fn postgres_refuses_writes_of_a_read_only_session() {
    let Some(server) = testing::server("postgres") else { return };
    // The role may do all that a read-only session refuses.
    testing::make_superuser(&server);
    let mut other = connect(server.url()).unwrap();
    for sql in POSTGRES_MADE {
        execute(&mut *other, sql).unwrap();
    }
    let reads = [
        "SELECT DISTINCT ON (n) id, n FROM theirs ORDER BY n",
        "SELECT twice(n) FROM theirs",
        "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 5) SELECT x FROM a",
        "SELECT rank() OVER (ORDER BY n DESC) FROM theirs",
        "SELECT j->>'a' FROM theirs WHERE j @> '{\"a\": 1}'",
        "EXPLAIN DELETE FROM theirs",
        "SHOW server_version",
        "SET work_mem = '8MB'",
        "RESET ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "VALUES (1)",
        "TABLE theirs",
        "SELECT pg_advisory_lock(5)::text",
    ];
    let writes = [
        "INSERT INTO theirs VALUES (3, 7)",
        "UPDATE theirs SET n = 0",
        "DELETE FROM theirs",
        "MERGE INTO theirs USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE",
        "WITH d AS (DELETE FROM theirs RETURNING 1) SELECT count(*) FROM d",
        "SELECT charge()",
        "SELECT id FROM theirs FOR UPDATE",
        "SELECT nextval('numbers')",
        "SELECT 1 AS a INTO made",
        "CREATE TABLE made (a int)",
        "CREATE TABLE made AS SELECT 1",
        "CREATE INDEX ON theirs (n)",
        "DROP TABLE theirs",
        "ALTER TABLE theirs ADD COLUMN a int",
        "TRUNCATE theirs",
        "COPY theirs FROM PROGRAM 'echo 5'",
        "GRANT SELECT ON theirs TO PUBLIC",
        "EXPLAIN ANALYZE DELETE FROM theirs",
        "DO $$ BEGIN DELETE FROM theirs; END $$",
    ];
    let driver = open(server.url()).unwrap();
    check(&*driver, "postgres", &reads, &writes, &["DELETE FROM theirs; DELETE FROM theirs"]);
    // What no list of words can find: a function that switches the session. The server says that it did.
    for sql in ["SELECT unlock()", "SELECT set_config('default_transaction_read_only', 'off', false)"] {
        let mut session = reader(&*driver);
        let error = execute(&mut *session, sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{sql}: {error}");
        session.close().unwrap();
    }
}

#[test]
fn mysql_and_mariadb_refuse_writes_of_a_read_only_session() {
    if !has_mariadb_program() {
        return;
    }
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        administer_by(
            &server,
            "|",
            "CREATE TABLE theirs (id BIGINT PRIMARY KEY, n BIGINT, j JSON)|
             INSERT INTO theirs VALUES (1, 5, '{\"a\": 1}'), (2, 6, '{}')|
             CREATE TABLE old (id INT, n INT) ENGINE = MyISAM|
             CREATE FUNCTION charge() RETURNS INT DETERMINISTIC MODIFIES SQL DATA
                 BEGIN UPDATE theirs SET n = n + 1; RETURN 1; END|
             CREATE FUNCTION charge_old() RETURNS INT DETERMINISTIC MODIFIES SQL DATA
                 BEGIN INSERT INTO old VALUES (1, 1); RETURN 1; END|
             CREATE FUNCTION twice(a BIGINT) RETURNS BIGINT DETERMINISTIC RETURN 2 * a|",
        );
        let reads = [
            "SELECT STRAIGHT_JOIN a.id FROM theirs a JOIN theirs b ON a.id = b.id",
            "SELECT twice(n) FROM theirs",
            "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 5) SELECT x FROM a",
            "SELECT RANK() OVER (ORDER BY n DESC) FROM theirs",
            "SELECT JSON_EXTRACT(j, '$.a') FROM theirs",
            "SELECT `n` FROM theirs FORCE INDEX (PRIMARY)",
            "SHOW TABLES",
            "SET SESSION sort_buffer_size = 100000",
            "SELECT COUNT(*) FROM old",
            "SELECT GET_LOCK('kurabe_test', 1)",
            "SELECT RELEASE_LOCK('kurabe_test')",
        ];
        let writes = [
            "INSERT INTO theirs VALUES (3, 7, NULL)",
            "INSERT INTO old VALUES (1, 1)",
            "REPLACE INTO theirs VALUES (1, 7, NULL)",
            "UPDATE theirs SET n = 0",
            "DELETE FROM theirs",
            "DELETE FROM old",
            "SELECT charge()",
            "SELECT charge_old()",
            "CREATE TABLE made (a INT)",
            "CREATE TABLE made AS SELECT 1",
            "CREATE INDEX i ON theirs (n)",
            "DROP TABLE theirs",
            "ALTER TABLE theirs ADD COLUMN a INT",
            "TRUNCATE TABLE theirs",
            "RENAME TABLE theirs TO others",
            "OPTIMIZE TABLE theirs",
            "CREATE VIEW made AS SELECT 1",
            "CREATE USER made@localhost",
        ];
        // The first two cannot be prepared; MariaDB has no such WITH.
        let stopped = [
            "LOAD DATA INFILE '/etc/hostname' INTO TABLE old",
            "SELECT 1; DELETE FROM theirs",
            "WITH d AS (SELECT 1) DELETE FROM theirs",
        ];
        let driver = open(server.url()).unwrap();
        check(&*driver, engine, &reads, &writes, &stopped);
        let mut other = connect(server.url()).unwrap();
        assert_eq!(execute(&mut *other, "SELECT COUNT(*) FROM old").unwrap().field_int(0, 0), Some(0));
    }
}
