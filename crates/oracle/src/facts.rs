//! Facts about an Oracle database, as far as the user may read them.

use super::config::{Config, Lob};
use super::link::Link;
use kurabe_driver_common::clients::ORACLEDB;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::reported::{Reported, listed};

/// Parameters that decide the durability class, in V$PARAMETER, with the session's values.
const DURABILITY: [&str; 3] = ["commit_wait", "commit_logging", "commit_write"];

/// Other parameters that affect results, in V$PARAMETER.
const OTHERS: [&str; 20] = [
    "compatible", "cpu_count", "cursor_sharing", "db_block_size", "db_cache_size", "db_securefile",
    "disk_asynch_io", "filesystemio_options", "log_buffer", "max_string_size", "memory_target",
    "open_cursors", "optimizer_mode", "pga_aggregate_target", "processes", "session_cached_cursors",
    "sessions", "sga_target", "shared_pool_size", "shared_servers",
];

/// The product name, which all users may read.
pub(crate) const BANNER: &str = "SELECT BANNER FROM V$VERSION";
/// The character sets, which all users may read.
pub(crate) const CHARACTER_SETS: &str = "SELECT PARAMETER, VALUE FROM NLS_DATABASE_PARAMETERS \
     WHERE PARAMETER IN ('NLS_CHARACTERSET', 'NLS_NCHAR_CHARACTERSET') ORDER BY PARAMETER";
/// The profile's limit of sessions, which all users may read.
pub(crate) const PROFILE: &str =
    "SELECT R.LIMIT FROM USER_RESOURCE_LIMITS R WHERE R.RESOURCE_NAME = 'SESSIONS_PER_USER'";
/// The default tablespace of our tables and its block size, which all users may read.
pub(crate) const TABLESPACE: &str = "SELECT U.DEFAULT_TABLESPACE, T.BLOCK_SIZE FROM USER_USERS U \
     JOIN USER_TABLESPACES T ON T.TABLESPACE_NAME = U.DEFAULT_TABLESPACE";
/// Processes and sessions; requires SELECT on `V_$RESOURCE_LIMIT`.
pub(crate) const RESOURCES: &str = "SELECT RESOURCE_NAME, CURRENT_UTILIZATION, LIMIT_VALUE FROM V$RESOURCE_LIMIT \
     WHERE RESOURCE_NAME IN ('processes', 'sessions') ORDER BY RESOURCE_NAME";
/// Data Guard and the redo log; requires SELECT on `V_$DATABASE`.
pub(crate) const DATABASE: &str = "SELECT LOG_MODE, FORCE_LOGGING, FLASHBACK_ON, DATABASE_ROLE, OPEN_MODE, \
     PROTECTION_MODE, PROTECTION_LEVEL FROM V$DATABASE";

/// The settings; requires SELECT on `V_$PARAMETER`.
pub(crate) fn parameters() -> String {
    let names = listed(DURABILITY.iter().chain(&OTHERS));
    format!("SELECT NAME, VALUE FROM V$PARAMETER WHERE NAME IN ({names}) ORDER BY NAME")
}

pub(crate) fn read(link: &mut Link, config: &Config) -> Result<ServerFacts> {
    let mut notes = [
        "Each change outside a transaction is two round trips, the statement and the commit: the client crate \
         cannot commit with the statement.",
        "Beginning a transaction sends nothing; inserting many rows within one sets a savepoint first.",
        "Adding or replacing a row of a table with LOBs is an UPDATE, and an INSERT if there was no row: MERGE \
         accepts no value of more than 4,000 bytes.",
        "Oracle treats empty text as NULL; an empty text is stored as one zero character.",
    ]
    .map(str::to_owned)
    .to_vec();
    if config.lob == Lob::Locator {
        notes.push(
            "LOBs are read by locator: one round trip for each value in addition to the query's.".to_owned(),
        );
    }
    let version = link.version()?;
    let banner = optional(link, BANNER)?.and_then(|rows| rows.into_iter().next()?.into_iter().next());
    let found = optional(link, &parameters())?;
    if found.is_none() {
        notes.push(
            "The user may not read V$PARAMETER: whether a commit waits for the disk is unknown unless \
             --durability sets it (GRANT SELECT ON V_$PARAMETER)."
                .to_owned(),
        );
    }
    let with_value = |row: &Vec<String>| row.get(1).is_some_and(|value| !value.is_empty());
    let parameters = Reported::of(found.iter().flatten().filter(|row| with_value(row)).cloned().collect());
    let mut durability_settings = parameters.pick(&DURABILITY);
    let mut settings = parameters.pick(&OTHERS);
    settings.extend(pairs(optional(link, CHARACTER_SETS)?));
    if let Some([tablespace, block]) = first(optional(link, TABLESPACE)?) {
        settings.push(Setting::new("block size of tablespace ".to_owned() + &tablespace, block));
    }
    settings.push(Setting::new("statement cache (client)", config.statement_cache.to_string()));
    settings.push(Setting::new("prefetch (client)", config.prefetch.to_string()));
    settings.push(Setting::new("fetch size (client)", config.fetch_size.to_string()));
    if !settings.iter().any(|s| s.name == "NLS_CHARACTERSET" && s.value == "AL32UTF8") {
        notes.push(
            "The character set is not AL32UTF8: characters that it lacks are returned changed.".to_owned(),
        );
    }
    let mut level = String::new();
    match first::<7>(optional(link, DATABASE)?) {
        Some(database) => {
            let names = [
                "log_mode",
                "force_logging",
                "flashback_on",
                "database_role",
                "open_mode",
                "protection_mode",
                "protection_level",
            ];
            durability_settings
                .extend(names.iter().zip(&database).map(|(name, value)| Setting::new(*name, value)));
            level.clone_from(&database[6]);
        }
        None => notes.push(
            "The user may not read V$DATABASE: whether a standby has each commit is unknown (GRANT SELECT ON \
             V_$DATABASE)."
                .to_owned(),
        ),
    }
    let durability = match (config.wait_for_redo, found.is_some()) {
        (None, false) => None,
        (asked, _) => Some(durability(asked, &parameters, &level, &mut notes)),
    };
    let (connections, in_use) = limits(optional(link, RESOURCES)?, optional(link, PROFILE)?);
    Ok(ServerFacts {
        engine: "Oracle Database".to_owned(),
        version: banner.map_or_else(|| version.clone(), |banner| format!("{version} ({})", banner.trim())),
        client: ORACLEDB.to_owned(),
        transport: link.transport().to_owned(),
        durability,
        durability_settings,
        settings,
        limits: Limits {
            connections,
            connections_in_use: in_use,
            parameters: Some(Limit::new(65_535, "Oracle (bind variables of a statement)")),
            ..Limits::default()
        },
        notes,
        ..ServerFacts::default()
    })
}

/// The rows; `None` if the user may not read them.
fn optional(link: &mut Link, sql: &str) -> Result<Option<Vec<Vec<String>>>> {
    match link.rows(sql) {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotPermitted) => Ok(None),
        Err(error) => Err(error),
    }
}

fn first<const N: usize>(rows: Option<Vec<Vec<String>>>) -> Option<[String; N]> {
    rows?.into_iter().next()?.try_into().ok()
}

fn pairs(rows: Option<Vec<Vec<String>>>) -> Vec<Setting> {
    let pair =
        |row: Vec<String>| <[String; 2]>::try_from(row).ok().map(|[name, value]| Setting::new(name, value));
    rows.unwrap_or_default().into_iter().filter_map(pair).collect()
}

/// The class of these settings (Database Reference, `COMMIT_WAIT`, `COMMIT_LOGGING`, `COMMIT_WRITE`; Data Guard
/// Concepts, "Protection Modes"). By default, a commit waits until its redo is on disk.
fn durability(
    required: Option<bool>,
    reported: &Reported,
    level: &str,
    notes: &mut Vec<String>,
) -> DurabilityClass {
    let [wait, write] = ["commit_wait", "commit_write"].map(|name| reported.text(name).to_ascii_uppercase());
    // If the old parameter and the new ones disagree, the weaker value counts.
    let waits = required.unwrap_or_else(|| {
        wait == "FORCE_WAIT" || (wait != "NOWAIT" && !write.split(',').any(|word| word.trim() == "NOWAIT"))
    });
    if !waits {
        let batches = reported.text("commit_logging").eq_ignore_ascii_case("BATCH")
            || write.split(',').any(|word| word.trim() == "BATCH");
        // A session that is set not to wait is also set not to batch.
        let (when, class) = if batches && required.is_none() {
            ("within about three seconds", DurabilityClass::Memory)
        } else {
            ("soon after", DurabilityClass::PeriodicSync)
        };
        notes.push(format!(
            "Commits do not wait for the redo log, which is written {when}: a crash of the server alone loses as much."
        ));
        return class;
    }
    match level {
        "MAXIMUM PROTECTION" | "MAXIMUM AVAILABILITY" => DurabilityClass::Replicated,
        _ => DurabilityClass::Synced,
    }
}

/// The number of connections that this user may open, and the number of other sessions.
fn limits(
    resources: Option<Vec<Vec<String>>>,
    profile: Option<Vec<Vec<String>>>,
) -> (Option<Limit>, Option<u64>) {
    let mut limits = Vec::new();
    let mut in_use = None;
    for row in resources.unwrap_or_default() {
        let [name, used, most] = row.as_slice() else { continue };
        // Values are padded with spaces; UNLIMITED means no limit.
        limits.extend(most.trim().parse().ok().map(|most| Limit::new(most, name)));
        if name == "sessions" {
            in_use = used.trim().parse::<u64>().ok().map(|used| used.saturating_sub(1));
        }
    }
    let of_profile = profile.and_then(|rows| rows.first()?.first()?.trim().parse().ok());
    limits.extend(of_profile.map(|most| Limit::new(most, "SESSIONS_PER_USER of the user's profile")));
    (limits.into_iter().min_by_key(|limit| limit.most), in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(asked: Option<bool>, settings: &[(&str, &'static str)], level: &str) -> DurabilityClass {
        durability(asked, &settings.into(), level, &mut Vec::new())
    }

    #[test]
    fn class_depends_on_settings() {
        use DurabilityClass::{Memory, PeriodicSync, Replicated, Synced};
        assert_eq!(class(None, &[], ""), Synced);
        assert_eq!(class(None, &[("commit_wait", "NOWAIT")], ""), PeriodicSync);
        assert_eq!(class(None, &[("commit_write", "IMMEDIATE, nowait")], ""), PeriodicSync);
        // Three seconds exceed the limit of `PeriodicSync`.
        assert_eq!(class(None, &[("commit_write", "BATCH, nowait")], ""), Memory);
        assert_eq!(class(None, &[("commit_wait", "NOWAIT"), ("commit_logging", "BATCH")], ""), Memory);
        assert_eq!(class(None, &[("commit_logging", "BATCH")], ""), Synced);
        assert_eq!(class(None, &[("commit_write", "IMMEDIATE,WAIT")], ""), Synced);
        assert_eq!(class(None, &[("commit_wait", "FORCE_WAIT"), ("commit_write", "NOWAIT")], ""), Synced);
        assert_eq!(class(Some(true), &[("commit_wait", "NOWAIT")], ""), Synced);
        assert_eq!(class(Some(false), &[], "MAXIMUM PROTECTION"), PeriodicSync);
        assert_eq!(class(None, &[], "MAXIMUM AVAILABILITY"), Replicated);
        assert_eq!(class(None, &[], "MAXIMUM PERFORMANCE"), Synced);
        assert_eq!(class(None, &[], "RESYNCHRONIZATION"), Synced);
    }

    #[test]
    fn smallest_limit_counts_and_unlimited_is_no_limit() {
        let row = |fields: [&str; 3]| fields.map(str::to_owned).to_vec();
        let resources = vec![row(["processes", "90", "       320"]), row(["sessions", "101", "       504"])];
        let profile = |value: &str| Some(vec![vec![value.to_owned()]]);
        let (most, used) = limits(Some(resources.clone()), profile("UNLIMITED"));
        assert_eq!(
            (most.map(|m| (m.most, m.set_by)), used),
            (Some((320, "processes".to_owned())), Some(100))
        );
        let (most, _) = limits(Some(resources), profile("20"));
        assert_eq!(most.map(|limit| limit.most), Some(20));
        assert_eq!(limits(None, profile("UNLIMITED")), (None, None));
    }
}
