//! Whether a table of Kurabe's name is one that Kurabe made.
//!
//! Tables have no owner here. A view or a table of an engine that reads elsewhere runs what its author chose; a trigger runs
//! with its author's rights, whenever we write.

use crate::ownership::MARKER;
use crate::prelude::*;
use crate::wire::link::{Query, rows};
use kurabe_core::collection::TABLE_COMMENT;

/// Storage engines that keep a table's rows themselves.
const STORES: [&str; 9] =
    ["InnoDB", "MyISAM", "Aria", "MEMORY", "ROCKSDB", "TokuDB", "ndbcluster", "ARCHIVE", "CSV"];

/// The columns of the ownership table.
const COLUMNS: [(&str, &str); 3] =
    [("name", "varchar(60)"), ("made_by", "varchar(60)"), ("made_at", "bigint")];

/// Why a table was not made by Kurabe, as a clause; `None` if it was, or does not exist.
pub(super) fn doubt(link: &mut dyn Query, name: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT table_type, engine, table_comment, create_options FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = '{name}'"
    );
    let Some(row) = rows(link, &sql)?.into_iter().next() else { return Ok(None) };
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let (kind, engine, comment, options) = (field(0), field(1), field(2), field(3));
    let clause = |text: String| Ok(Some(text));
    if kind != "BASE TABLE" {
        return clause(format!("it is a {}", kind.to_ascii_lowercase()));
    }
    if comment != TABLE_COMMENT {
        return clause(format!("its comment is not '{TABLE_COMMENT}'"));
    }
    // The measured tables have the engine that the target names.
    if name != MARKER {
        return Ok(None);
    }
    if !STORES.iter().any(|known| known.eq_ignore_ascii_case(engine)) {
        return clause(format!("its storage engine is {engine}"));
    }
    if options.contains("partitioned") {
        return clause("it is partitioned".to_owned());
    }
    let sql = format!(
        "SELECT trigger_name, definer FROM information_schema.triggers \
         WHERE event_object_schema = DATABASE() AND event_object_table = '{name}'"
    );
    if let Some([trigger, definer]) = rows(link, &sql)?.first().map(Vec::as_slice) {
        return clause(format!("it has a trigger, {trigger} of {definer}"));
    }
    let sql = format!(
        "SELECT constraint_name FROM information_schema.table_constraints WHERE table_schema = DATABASE() AND \
         table_name = '{name}' AND constraint_type <> 'PRIMARY KEY' UNION ALL \
         SELECT CONCAT(constraint_name, ' of ', table_name) FROM information_schema.referential_constraints \
         WHERE unique_constraint_schema = DATABASE() AND referenced_table_name = '{name}'"
    );
    if let Some([constraint, ..]) = rows(link, &sql)?.first().map(Vec::as_slice) {
        return clause(format!("it has a constraint, {constraint}"));
    }
    let sql = format!(
        "SELECT column_name, column_type, extra FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = '{name}' ORDER BY ordinal_position"
    );
    let found = rows(link, &sql)?;
    let is_ours = |(row, (name, kind)): (&Vec<String>, (&str, &str))| {
        let field = |at: usize| row.get(at).map_or("", String::as_str);
        // Older servers show a width of whole numbers.
        let found = field(1).strip_suffix("(20)").unwrap_or(field(1));
        field(0) == name && found == kind && field(2).is_empty()
    };
    let same = found.len() == COLUMNS.len() && found.iter().zip(COLUMNS).all(is_ours);
    Ok((!same).then(|| "it has other columns".to_owned()))
}
