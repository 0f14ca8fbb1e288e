//! Capabilities of both ends ("Capabilities Flags").

pub const LONG_PASSWORD: u32 = 1;
/// Updates count rows that were found, and not those that were changed.
pub const FOUND_ROWS: u32 = 1 << 1;
pub const LONG_FLAG: u32 = 1 << 2;
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// Packets are in frames that are compressed by zlib, from the end of the handshake.
pub const COMPRESS: u32 = 1 << 5;
/// The server may request a file of `LOAD DATA LOCAL`.
pub const LOCAL_FILES: u32 = 1 << 7;
pub const PROTOCOL_41: u32 = 1 << 9;
pub const SSL: u32 = 1 << 11;
pub const TRANSACTIONS: u32 = 1 << 13;
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// A query may have several statements.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// The server may send several results for a query, such as `CALL`.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// The same for prepared statements.
pub const PS_MULTI_RESULTS: u32 = 1 << 18;
pub const PLUGIN_AUTH: u32 = 1 << 19;
pub const CONNECT_ATTRS: u32 = 1 << 20;
pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// An OK packet says which settings of the session have changed.
pub const SESSION_TRACK: u32 = 1 << 23;
/// Answers have no EOF packets.
pub const DEPRECATE_EOF: u32 = 1 << 24;
pub const OPTIONAL_METADATA: u32 = 1 << 25;
/// As `COMPRESS`, by zstd.
pub const ZSTD_COMPRESSION: u32 = 1 << 26;
pub const QUERY_ATTRIBUTES: u32 = 1 << 27;
/// MariaDB only, in a separate field: a client may keep the column definitions received at preparation.
pub const MARIADB_CACHE_METADATA: u32 = 1 << 4;
