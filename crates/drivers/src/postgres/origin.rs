//! Whether a table of Kurabe's name is one that Kurabe made for the session's own role.
//!
//! Whoever may create in the schema can create the ownership table first, and attach what then runs with the rights of the
//! run's user: triggers, rules, policies, defaults, checks.

use crate::ownership::MARKER;
use crate::prelude::*;
use crate::wire::link::{Query, rows};

/// The columns of the ownership table, as the server names their types.
const COLUMNS: [[&str; 2]; 3] =
    [["name", "character varying(60)"], ["made_by", "character varying(60)"], ["made_at", "bigint"]];

/// Why a table was not made by Kurabe for this role, as a clause; `None` if it was, or does not exist. `relation`: its row
/// `c` in the catalogue.
pub(super) fn doubt(link: &mut dyn Query, relation: &str, name: &str) -> Result<Option<String>> {
    let doubt = match of_table(link, relation, name)? {
        Some(why) => Some(why),
        None => of_server(link, name)?,
    };
    Ok(doubt)
}

fn of_table(link: &mut dyn Query, relation: &str, name: &str) -> Result<Option<String>> {
    let count = |from: &str| format!("(SELECT pg_catalog.count(*) FROM pg_catalog.{from})");
    let attached = [
        ("a trigger", "pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal"),
        ("a rule", "pg_rewrite r WHERE r.ev_class = c.oid"),
        ("a row security policy", "pg_policy p WHERE p.polrelid = c.oid"),
        ("a default or a generated column", "pg_attrdef d WHERE d.adrelid = c.oid"),
        (
            "a check or a foreign key",
            "pg_constraint k WHERE k.conrelid = c.oid AND k.contype NOT IN ('p', 'n')",
        ),
        ("a foreign key that refers to it", "pg_constraint k WHERE k.confrelid = c.oid"),
        ("a parent", "pg_inherits i WHERE i.inhrelid = c.oid"),
        ("a child", "pg_inherits i WHERE i.inhparent = c.oid"),
        ("an index of an expression", "pg_index x WHERE x.indrelid = c.oid AND x.indexprs IS NOT NULL"),
        ("an index of a part of it", "pg_index x WHERE x.indrelid = c.oid AND x.indpred IS NOT NULL"),
        (
            "a privilege of another role to change it",
            "aclexplode(c.relacl) a WHERE a.grantee <> c.relowner AND a.privilege_type NOT IN ('SELECT', 'MAINTAIN')",
        ),
    ];
    let counts: Vec<String> = attached.iter().map(|(_, from)| count(from)).collect();
    let sql = format!(
        "SELECT c.oid, c.relkind, pg_catalog.pg_get_userbyid(c.relowner), current_user, c.relrowsecurity, {} FROM {relation}",
        counts.join(", ")
    );
    let Some(row) = known(rows(link, &sql))?.into_iter().next() else { return Ok(None) };
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let (oid, kind, owner, user) = (field(0), field(1), field(2), field(3));
    if owner != user {
        return Ok(Some(format!("it belongs to role {owner}, and this session is of role {user}")));
    }
    if !(kind == "r" || kind == "f" && name != MARKER) {
        let kind = match kind {
            "v" | "m" => "a view",
            "f" => "a foreign table",
            "p" => "a partitioned table",
            "S" => "a sequence",
            _ => "no table",
        };
        return Ok(Some(format!("it is {kind}")));
    }
    if name != MARKER {
        return Ok(None);
    }
    if field(4) == "t" {
        return Ok(Some("it has row security".to_owned()));
    }
    if let Some((what, _)) =
        attached.iter().enumerate().find(|(at, _)| field(5 + at) != "0").map(|(_, one)| one)
    {
        return Ok(Some(format!("it has {what}")));
    }
    let sql = format!(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a \
         WHERE a.attrelid = '{oid}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let columns = rows(link, &sql)?;
    let same = columns.len() == COLUMNS.len()
        && columns.iter().zip(COLUMNS).all(|(found, own)| found.iter().map(String::as_str).eq(own));
    Ok((!same).then(|| "it has other columns".to_owned()))
}

/// A linked collection has a foreign server of its name.
fn of_server(link: &mut dyn Query, name: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT pg_catalog.pg_get_userbyid(srvowner) FROM pg_catalog.pg_foreign_server WHERE srvname = '{name}' \
         AND pg_catalog.pg_get_userbyid(srvowner) <> current_user"
    );
    let found = known(rows(link, &sql))?;
    let owner = found.first().and_then(|row| row.first());
    Ok(owner.map(|owner| format!("a foreign server of its name belongs to role {owner}")))
}

/// The answer; no rows from another product than PostgreSQL, which speaks the protocol and lacks a part of the catalogue.
fn known(found: Result<Vec<Vec<String>>>) -> Result<Vec<Vec<String>>> {
    // undefined_table, undefined_column, undefined_function
    let missing = ["42P01", "42703", "42883"];
    match found {
        Err(error) if error.server_code().is_some_and(|code| missing.contains(&code)) => Ok(Vec::new()),
        found => found,
    }
}
