//! Facts about a database and its server.

use crate::dialect::DIALECT;
use crate::link::FirebirdLink;
use kurabe_driver_common::clients::RSFBCLIENT_RUST;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::wire::link::rows;

const FACTS: &str = "SELECT RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION'), TRIM(IIF(d.MON$FORCED_WRITES = 1, 'on', 'off')), \
    (SELECT COUNT(*) FROM MON$ATTACHMENTS a WHERE a.MON$SYSTEM_FLAG = 0 AND a.MON$ATTACHMENT_ID <> CURRENT_CONNECTION), \
    d.MON$PAGE_SIZE, d.MON$PAGE_BUFFERS, d.MON$PAGE_SIZE * d.MON$PAGE_BUFFERS, d.MON$SWEEP_INTERVAL, \
    TRIM(IIF(d.MON$RESERVE_SPACE = 1, 'yes', 'no')), d.MON$SQL_DIALECT, \
    d.MON$ODS_MAJOR || '.' || d.MON$ODS_MINOR, TRIM(r.RDB$CHARACTER_SET_NAME) \
    FROM MON$DATABASE d CROSS JOIN RDB$DATABASE r";

/// Names of the settings, in the query's order.
const SETTINGS: [&str; 8] = [
    "page size", "page buffers", "page cache", "sweep interval", "reserve space", "SQL dialect",
    "on-disk structure", "character set",
];

const NOTES: [&str; 5] = [
    "The client waits for each answer: a query takes three round trips, a change without a transaction four.",
    "The client reads 1,024 bytes of a BLOB (long text and bytes) per round trip.",
    "The client encrypts with ARC4 unless the server has WireCrypt = Disabled.",
    "An index sorts the smallest BIGINT after 0: a fault of Firebird 3.",
    "Connecting includes one query, which finds the client's socket.",
];

pub(crate) fn read(link: &mut FirebirdLink) -> Result<ServerFacts> {
    let row = rows(link, FACTS)?.into_iter().next().unwrap_or_default();
    let [version, forced, in_use, settings @ ..] = row.as_slice() else {
        return Err(Error::new(ErrorKind::Protocol, "the server does not describe its database"));
    };
    // A commit writes its pages: to the storage, or to the operating system.
    let class = if forced == "on" { DurabilityClass::Synced } else { DurabilityClass::OsCache };
    Ok(ServerFacts {
        engine: DIALECT.engine.to_owned(),
        version: version.clone(),
        client: RSFBCLIENT_RUST.to_owned(),
        transport: "TCP".to_owned(),
        durability: Some(class),
        durability_settings: vec![Setting::new("ForcedWrites", forced)],
        settings: SETTINGS.iter().zip(settings).map(|(name, value)| Setting::new(*name, value)).collect(),
        limits: Limits {
            // Firebird 3 has no setting that limits connections. Users other than administrators see only their own.
            connections_in_use: in_use.trim().parse().ok(),
            value_bytes: Some(Limit::new(u64::from(u32::MAX), "the engine (4 GB per BLOB)")),
            parameters: Some(Limit::new(32_767, "the protocol (16-bit count of values and null flags)")),
            ..Limits::default()
        },
        notes: NOTES.map(str::to_owned).to_vec(),
        ..ServerFacts::default()
    })
}
