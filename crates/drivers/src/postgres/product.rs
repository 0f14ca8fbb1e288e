//! Which product answers: many speak PostgreSQL's protocol, and some report PostgreSQL's version.

use crate::prelude::*;
use crate::wire::link::{Query, rows};

/// Products by a part of `version()`.
const BY_VERSION: [(&str, &str); 10] = [
    ("CockroachDB", "CockroachDB"),
    ("-YB-", "YugabyteDB"),
    ("Redshift", "Amazon Redshift"),
    ("Greenplum", "Greenplum"),
    ("EnterpriseDB", "EDB Postgres Advanced Server"),
    ("openGauss", "openGauss"),
    ("GaussDB", "GaussDB"),
    ("CrateDB", "CrateDB"),
    ("Materialize", "Materialize"),
    ("RisingWave", "RisingWave"),
];

/// Products by the beginning of the name of a setting or a function that only they have.
const BY_NAME: [(&str, &str); 4] = [
    ("aurora_version", "Amazon Aurora PostgreSQL"),
    ("alloydb.", "AlloyDB"),
    ("neon.", "Neon"),
    ("polar_", "PolarDB"),
];

/// The engine's own name.
const POSTGRES: &str = "PostgreSQL";

/// A product and its version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) engine: &'static str,
    pub(super) version: String,
}

/// Asks the server. `version` is its `server_version`.
pub(super) fn read(link: &mut dyn Query, version: String) -> Result<Product> {
    let mut ask = |sql: &str| match rows(link, sql) {
        Err(error) if error.server_code().is_some() => Ok(Vec::new()),
        found => found,
    };
    let mut text = ask("SELECT pg_catalog.version()")?;
    if text.is_empty() {
        text = ask("SELECT version()")?;
    }
    let text = text.into_iter().flatten().next().unwrap_or_default();
    let names = ask(
        "SELECT proname::text FROM pg_catalog.pg_proc WHERE proname = 'aurora_version' UNION ALL \
                     SELECT name FROM pg_catalog.pg_settings WHERE name LIKE 'alloydb.%' OR name LIKE 'neon.%' OR name LIKE 'polar$_%' ESCAPE '$'",
    )?;
    Ok(Product::of(&text, &names.into_iter().flatten().collect::<Vec<_>>(), version))
}

impl Product {
    fn of(text: &str, names: &[String], version: String) -> Self {
        let by_name = BY_NAME.iter().find(|(start, _)| names.iter().any(|name| name.starts_with(start)));
        let Some((_, engine)) = BY_VERSION.iter().find(|(part, _)| text.contains(part)).or(by_name) else {
            return Self { engine: POSTGRES, version };
        };
        // What they report as the version of PostgreSQL says little.
        Self { engine, version: if text.is_empty() { version } else { text.to_owned() } }
    }

    /// A note about another product than PostgreSQL, whose settings of durability do not say what they say there.
    pub(super) fn note(&self) -> Option<String> {
        (self.engine != POSTGRES).then(|| {
            format!(
                "{} speaks PostgreSQL's protocol: what an acknowledged write survives there does not follow from settings \
                 of PostgreSQL, and is unknown",
                self.engine
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_named_as_themselves() {
        // Texts as the servers print them, from their manuals.
        for (text, names, engine) in [
            ("PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu", &[][..], "PostgreSQL"),
            (
                "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)",
                &[],
                "CockroachDB",
            ),
            ("PostgreSQL 11.2-YB-2.18.0.1-b0 on x86_64-pc-linux-gnu", &[], "YugabyteDB"),
            (
                "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.54239",
                &[],
                "Amazon Redshift",
            ),
            (
                "PostgreSQL 14.6 on x86_64-pc-linux-gnu, compiled by gcc",
                &["aurora_version"],
                "Amazon Aurora PostgreSQL",
            ),
            ("PostgreSQL 15.5 on x86_64-pc-linux-gnu", &["neon.tenant_id"], "Neon"),
        ] {
            let names: Vec<String> = names.iter().map(|name: &&str| (*name).to_owned()).collect();
            let found = Product::of(text, &names, "15.18".to_owned());
            assert_eq!(found.engine, engine, "{text}");
            assert_eq!(found.note().is_none(), engine == "PostgreSQL");
            assert_eq!(found.version, if engine == "PostgreSQL" { "15.18" } else { text });
        }
    }
}
