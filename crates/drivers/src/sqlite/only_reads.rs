//! Statements of SQLite that write to no table and change something nevertheless: `ATTACH` makes a file, and a `PRAGMA` may change
//! settings of the process, take locks that stop others, or have the file written. Some are executed while they are compiled.

/// What has an argument, and only reads or is the connection's own.
const PRAGMAS: [&str; 25] = [
    "analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "case_sensitive_like",
    "cell_size_check", "foreign_key_check", "foreign_key_list", "full_column_names", "index_info",
    "index_list", "index_xinfo", "integrity_check", "mmap_size", "query_only", "quick_check",
    "read_uncommitted", "recursive_triggers", "reverse_unordered_selects", "table_info", "table_list",
    "table_xinfo", "temp_store", "threads",
];
/// What changes something without an argument.
const CHANGES: [&str; 4] = ["incremental_vacuum", "optimize", "shrink_memory", "wal_checkpoint"];

/// Whether a statement that writes to no table changes nothing else.
pub(super) fn only_reads(sql: &str) -> bool {
    let (mut first, mut rest) = word(start(sql));
    // What is explained is compiled.
    while ["explain", "query", "plan"].iter().any(|known| first.eq_ignore_ascii_case(known)) {
        (first, rest) = word(start(rest));
    }
    if first.eq_ignore_ascii_case("attach") || first.eq_ignore_ascii_case("detach") {
        return false;
    }
    if !first.eq_ignore_ascii_case("pragma") {
        return true;
    }
    let (mut name, mut rest) = word(start(rest));
    if let Some(after) = start(rest).strip_prefix('.') {
        (name, rest) = word(start(after));
    }
    let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    // A quoted name is none.
    if start(rest).is_empty() { !name.is_empty() && !is_one_of(&CHANGES) } else { is_one_of(&PRAGMAS) }
}

/// The word at the front, and the rest.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}

/// The text from its first token on that is no semicolon.
fn start(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';' || c == '\u{feff}');
        let rest = if let Some(rest) = text.strip_prefix("--") {
            rest.split_once('\n').map(|(_, rest)| rest)
        } else if let Some(rest) = text.strip_prefix("/*") {
            rest.split_once("*/").map(|(_, rest)| rest)
        } else {
            return text;
        };
        text = rest.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::only_reads;

    #[test]
    fn attached_files_and_settings_of_others_are_found_behind_comments_and_quotes() {
        for sql in [
            "SELECT 1",
            "PRAGMA table_info(t)",
            "pragma main . cache_size = 5",
            "PRAGMA user_version",
            "PRAGMA encoding;",
            "/* ATTACH 'x' AS y */ SELECT 1",
            "EXPLAIN SELECT 1",
        ] {
            assert!(only_reads(sql), "{sql}");
        }
        for sql in [
            "ATTACH 'x' AS y",
            " -- a\n/* b */attach/**/'x' AS y",
            "\u{feff};DETACH y",
            "PRAGMA locking_mode = exclusive",
            "PRAGMA main./**/locking_mode(exclusive)",
            "PRAGMA \"locking_mode\" = exclusive",
            "PRAGMA 'temp_store_directory' = 'x'",
            "EXPLAIN QUERY PLAN PRAGMA hard_heap_limit = 9",
            "PRAGMA Optimize",
            "PRAGMA wal_checkpoint",
            "PRAGMA main.\"optimize\"",
        ] {
            assert!(!only_reads(sql), "{sql}");
        }
    }
}
