//! Statements that SQLite executes in a read-only session: none changes a file, or makes one, or opens the way for the next one.

use crate::common::open;
use crate::read_only::{execute, literal, reader};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;

const MADE: &str = "
    CREATE TABLE theirs (id INTEGER PRIMARY KEY, n INTEGER);
    INSERT INTO theirs VALUES (1, 5), (2, 6);
    CREATE TABLE spare (id INTEGER);
    CREATE INDEX by_n ON theirs (n);
    CREATE VIEW seen AS SELECT n FROM theirs;
    CREATE TRIGGER copied INSTEAD OF INSERT ON seen BEGIN INSERT INTO theirs (n) VALUES (new.n); END;
    CREATE TRIGGER counted AFTER INSERT ON theirs BEGIN UPDATE spare SET id = id + 1; END;
    CREATE VIRTUAL TABLE words USING fts5(t);
    INSERT INTO words VALUES ('one two');
    CREATE VIRTUAL TABLE old_words USING fts4(t);
    INSERT INTO old_words VALUES ('one two');
    INSERT INTO old_words VALUES ('three');
    CREATE VIRTUAL TABLE boxes USING rtree(id, a, b);
    INSERT INTO boxes VALUES (1, 0, 1);
    PRAGMA user_version = 3;
    DELETE FROM spare;";

/// `@` is the folder of the file.
const STATEMENTS: &[&str] = &[
    "INSERT INTO theirs VALUES (3, 7)",
    "INSERT OR REPLACE INTO theirs VALUES (1, 7)",
    "REPLACE INTO theirs VALUES (1, 7)",
    "INSERT INTO theirs VALUES (1, 7) ON CONFLICT DO UPDATE SET n = 7 RETURNING n",
    "INSERT INTO seen VALUES (7)",
    "UPDATE theirs SET n = n + 1 RETURNING n",
    "UPDATE theirs SET n = 1 FROM spare",
    "DELETE FROM theirs RETURNING id",
    "WITH d AS (SELECT 1) DELETE FROM theirs",
    "CREATE TABLE made (a)",
    "CREATE TABLE made AS SELECT 1",
    "CREATE TABLE IF NOT EXISTS made (a)",
    "CREATE TEMP TABLE made (a)",
    "CREATE TEMP TRIGGER later AFTER INSERT ON theirs BEGIN DELETE FROM theirs; END",
    "CREATE TEMP VIEW made AS SELECT 1",
    "CREATE VIRTUAL TABLE made USING fts5(a)",
    "CREATE VIRTUAL TABLE temp.made USING dbstat",
    "CREATE UNIQUE INDEX made ON theirs (n)",
    "DROP TABLE spare",
    "DROP TRIGGER counted",
    "DROP INDEX by_n",
    "ALTER TABLE spare ADD COLUMN a",
    "ALTER TABLE spare RENAME TO made",
    "INSERT INTO words VALUES ('three')",
    "INSERT INTO words(words) VALUES ('optimize')",
    "INSERT INTO words(words) VALUES ('delete-all')",
    "INSERT INTO boxes VALUES (2, 0, 1)",
    "ATTACH '@/made.db' AS made",
    "/* SELECT */ ATTACH DATABASE '@/made.db' AS made",
    "ATTACH 'file:@/made.db?mode=rwc' AS made",
    "ATTACH '@/other.db' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '@/made.db'",
    "ANALYZE",
    "ANALYZE theirs",
    "REINDEX",
    "BEGIN IMMEDIATE",
    "BEGIN EXCLUSIVE",
    "SELECT load_extension('@/made.so')",
    "SELECT load_extension('libsqlite3', 'init')",
    "SELECT writefile('@/made', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "PRAGMA query_only = OFF",
    "PRAGMA query_only(0)",
    "PRAGMA writable_schema = ON",
    "PRAGMA writable_schema = RESET",
    "UPDATE sqlite_schema SET sql = NULL",
    "DELETE FROM sqlite_schema",
    "INSERT INTO sqlite_schema VALUES ('table', 'made', 'made', 2, 'CREATE TABLE made (a)')",
    "PRAGMA user_version = 9",
    "PRAGMA application_id = 9",
    "PRAGMA schema_version = 9",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode = OFF",
    "PRAGMA journal_mode(memory)",
    "PRAGMA main.journal_mode = TRUNCATE",
    "PRAGMA wal_checkpoint",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA wal_autocheckpoint = 1",
    "PRAGMA auto_vacuum = FULL",
    "PRAGMA incremental_vacuum",
    "PRAGMA incremental_vacuum(10)",
    "PRAGMA encoding = 'UTF-16'",
    "PRAGMA page_size = 8192",
    "PRAGMA secure_delete = ON",
    "PRAGMA optimize",
    "PRAGMA optimize(0x10002)",
    // What a SELECT does by a function, or by a table that is a pragma.
    "SELECT * FROM pragma_optimize",
    "SELECT * FROM pragma_optimize(65535)",
    "SELECT * FROM pragma_optimize('0x10002')",
    "SELECT * FROM theirs, pragma_optimize(-1)",
    "SELECT * FROM pragma_journal_mode",
    "SELECT * FROM pragma_wal_checkpoint",
    "SELECT * FROM pragma_incremental_vacuum(10)",
    "SELECT optimize(old_words) FROM old_words",
    "SELECT optimize(old_words) FROM old_words LIMIT 1",
    "INSERT INTO old_words(old_words) VALUES ('optimize')",
    "INSERT INTO old_words(old_words) VALUES ('rebuild')",
    "INSERT INTO words(words, rank) VALUES ('merge', 500)",
    "INSERT INTO words(words) VALUES ('rebuild')",
    "INSERT INTO words(words, rank) VALUES ('automerge', 8)",
    "SELECT rtreecheck('boxes')",
    "EXPLAIN SELECT optimize(old_words) FROM old_words",
    "PRAGMA temp_store_directory = '@'",
    "PRAGMA data_store_directory = '@'",
    "PRAGMA \"temp_store_directory\" = '@'",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA main.locking_mode = EXCLUSIVE",
    "PRAGMA default_cache_size = 9",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = ON",
    "PRAGMA synchronous = OFF",
    "PRAGMA journal_size_limit = 1",
    "PRAGMA hard_heap_limit = 1000",
    "EXPLAIN PRAGMA hard_heap_limit = 1000",
    "PRAGMA soft_heap_limit = 1000",
    "SAVEPOINT a",
    "ROLLBACK",
    "COMMIT",
    "SELECT 1; DELETE FROM theirs",
    "; DELETE FROM theirs",
    "; PRAGMA soft_heap_limit = 1000",
    "EXPLAIN DELETE FROM theirs",
    "EXPLAIN QUERY PLAN DELETE FROM theirs",
];

/// What every statement finds, and leaves: all files with their bytes, and all tables.
fn state(folder: &Path, database: &Path) -> (BTreeMap<String, Vec<u8>>, String) {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        // The log's index has the readers, and an empty log has nothing.
        if !(name.ends_with("-shm") || name.ends_with("-wal") && entry.metadata().unwrap().len() == 0) {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    let connection =
        Connection::open_with_flags(database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let text = |sql: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    };
    let all = "SELECT concat_ws(' ', type, name, rootpage, sql) FROM sqlite_schema UNION ALL \
               SELECT 'row ' || id || ' ' || n FROM theirs UNION ALL SELECT 'word ' || t FROM words UNION ALL SELECT 'old ' || level || idx FROM old_words_segdir UNION ALL \
               SELECT 'box ' || id FROM boxes UNION ALL SELECT 'spare ' || count(*) FROM spare UNION ALL \
               SELECT 'version ' || user_version FROM pragma_user_version";
    (files, text(all))
}

#[test]
fn nothing_that_sqlite_executes_in_a_read_only_session_changes_anything() {
    for journal in ["wal", "delete"] {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("mine.db");
        for path in [&database, &folder.path().join("other.db")] {
            let file = Connection::open(path).unwrap();
            file.execute_batch(&format!("PRAGMA journal_mode = {journal}; {MADE}")).unwrap();
            file.close().unwrap();
        }
        // Somebody's connection, so that a log is there as it is beside a running application.
        let theirs = Connection::open(&database).unwrap();
        theirs.execute_batch("SELECT * FROM theirs").unwrap();
        let driver = open(&format!("sqlite:{}?journal_mode={journal}", database.display()));
        let before = state(folder.path(), &database);
        let mut refused = 0;
        for sql in STATEMENTS {
            let sql = sql.replace('@', &folder.path().display().to_string());
            for is_literal in [false, true] {
                for in_transaction in [false, true] {
                    let send = |session: &mut dyn kurabe_core::driver::Session, sql: &str| {
                        if is_literal { literal(session, sql) } else { execute(session, sql).map(drop) }
                    };
                    let mut session = reader(&*driver);
                    if in_transaction {
                        send(&mut *session, "BEGIN").unwrap();
                    }
                    let done = send(&mut *session, &sql);
                    refused += usize::from(done.is_err());
                    // Others read and write while the session is open.
                    if !in_transaction {
                        theirs
                            .execute_batch("BEGIN IMMEDIATE; ROLLBACK")
                            .unwrap_or_else(|error| panic!("{sql}: {error}"));
                    }
                    for next in [
                        "DELETE FROM theirs",
                        "INSERT INTO theirs VALUES (9, 9)",
                        "COMMIT",
                        "DELETE FROM theirs",
                    ] {
                        let _ = send(&mut *session, next);
                    }
                    drop(session);
                    let what = format!(
                        "{journal}, literal: {is_literal}, in a transaction: {in_transaction}: {sql}"
                    );
                    assert!(state(folder.path(), &database) == before, "{what}: {done:?}");
                }
            }
        }
        assert!(refused > 3 * STATEMENTS.len(), "{refused} of {}", 4 * STATEMENTS.len());
        // The next session has none of their settings.
        assert_eq!(execute(&mut *reader(&*driver), "SELECT n FROM theirs").unwrap().rows(), 2);
    }
}
