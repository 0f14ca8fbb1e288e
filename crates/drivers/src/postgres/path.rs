//! The schemas in which a session searches for what a statement names without one (PostgreSQL manual, "The Schema Search
//! Path", and "Function Type Resolution").
//!
//! Whoever may create in one of them can make a function or an operator that fits a statement's types better than the one
//! of `pg_catalog`, and that then runs with the rights of the session's user (CVE-2018-1058). Sessions for which only Kurabe
//! writes statements search `pg_catalog` alone. A client's session has its user's own path, because the statements may be
//! the user's; what Kurabe writes there fits `pg_catalog` exactly.

use super::config::Config;
use crate::prelude::*;
use crate::wire::link::{Query, rows, value};

const CATALOG: &str = "pg_catalog";

/// The schema in which the session creates tables; `None` if there is none.
pub(super) fn schema(link: &mut dyn Query) -> Result<Option<String>> {
    Ok(value(link, "SELECT pg_catalog.current_schema()")?.filter(|schema| !schema.is_empty()))
}

/// Has a session search `pg_catalog` alone. A server that speaks the protocol may not know the setting.
pub(super) fn only_catalog(link: &mut dyn Query) -> Result<()> {
    match link.query("SET search_path TO pg_catalog", &mut Reply::new()) {
        Err(error) if error.server_code().is_some() => Ok(()),
        done => done,
    }
}

/// Refuses a path in which other schemas precede `pg_catalog`: a role that may create there would decide what the functions and
/// operators of a client's statements are.
pub(super) fn check(link: &mut dyn Query, config: &Config) -> Result<()> {
    let found = match rows(link, "SELECT pg_catalog.unnest(pg_catalog.current_schemas(true))") {
        // A server that speaks the protocol, without these functions.
        Err(error) if error.server_code().is_some() => return Ok(()),
        found => found?.into_iter().flatten().collect::<Vec<_>>(),
    };
    let Some(before) = before_catalog(&found) else { return Ok(()) };
    Err(Error::unsupported(format!(
        "the search path of user {} has schema {before} before {CATALOG}: functions of others there would run in place of the \
         server's own",
        config.user
    ))
    .hint(format!("leave {CATALOG} out of search_path, which then begins with it, or give another one: ?search_path=public")))
}

/// The first schema before `pg_catalog`, other than that of the session's temporary tables, which holds no functions that are
/// found without its name.
fn before_catalog(path: &[String]) -> Option<&str> {
    let at = path.iter().position(|schema| schema == CATALOG)?;
    path[..at].iter().map(String::as_str).find(|schema| !schema.starts_with("pg_temp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_catalog_and_temporary_schema_may_come_first() {
        for (path, expected) in [
            (&["pg_catalog", "public"][..], None),
            (&["pg_temp_3", "pg_catalog", "public"], None),
            (&["public", "pg_catalog"], Some("public")),
            (&["pg_temp_3", "shop", "pg_catalog"], Some("shop")),
            // Another product.
            (&["public"], None),
            (&[], None),
        ] {
            let path: Vec<String> = path.iter().map(|schema| (*schema).to_owned()).collect();
            assert_eq!(before_catalog(&path), expected, "{path:?}");
        }
    }
}
