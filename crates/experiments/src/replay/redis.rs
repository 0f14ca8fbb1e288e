//! Commands of Redis and Valkey: <https://redis.io/docs/latest/commands/>.

use super::traffic::Sent;
use kurabe_capture::record::Value as Recorded;
use kurabe_core::{Error, Result};

/// Commands that change no key.
#[rustfmt::skip]
const READS: &[&str] = &[
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "CLIENT", "COMMAND", "DBSIZE", "DISCARD", "DUMP", "ECHO", "EVALSHA_RO", "EVAL_RO",
    "EXEC", "EXISTS", "EXPIRETIME", "FCALL_RO", "GEODIST", "GEOHASH", "GEOPOS", "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO",
    "GEOSEARCH", "GET", "GETBIT", "GETRANGE", "HELLO", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HRANDFIELD",
    "HSCAN", "HSTRLEN", "HVALS", "INFO", "KEYS", "LATENCY", "LCS", "LINDEX", "LLEN", "LPOS", "LRANGE", "MEMORY", "MGET", "MULTI",
    "OBJECT", "PEXPIRETIME", "PFCOUNT", "PING", "PTTL", "RANDOMKEY", "READONLY", "ROLE", "SCAN", "SCARD", "SDIFF", "SINTER",
    "SINTERCARD", "SISMEMBER", "SLOWLOG", "SMEMBERS", "SMISMEMBER", "SORT_RO", "SRANDMEMBER", "SSCAN", "STRLEN", "SUBSTR", "SUNION",
    "TIME", "TOUCH", "TTL", "TYPE", "UNWATCH", "WATCH", "XINFO", "XLEN", "XPENDING", "XRANGE", "XREAD", "XREVRANGE", "ZCARD",
    "ZCOUNT", "ZDIFF", "ZINTER", "ZINTERCARD", "ZLEXCOUNT", "ZMSCORE", "ZRANDMEMBER", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE",
    "ZRANK", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCAN", "ZSCORE", "ZUNION",
];
/// Commands that are not sent again: they are about the server, other databases or other clients, or end the connection.
#[rustfmt::skip]
const LEFT_OUT: &[&str] = &[
    "ACL", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT", "CLUSTER", "CONFIG", "DEBUG", "FAILOVER", "FLUSHALL", "FUNCTION", "LATENCY",
    "MIGRATE", "MODULE", "MOVE", "PUBLISH", "QUIT", "REPLICAOF", "RESET", "SAVE", "SCRIPT", "SELECT", "SENTINEL", "SHUTDOWN",
    "SLAVEOF", "SLOWLOG", "SPUBLISH", "SWAPDB",
];
/// Commands whose answers depend on time, chance or the server.
#[rustfmt::skip]
pub(super) const VOLATILE: &[&str] = &[
    "command", "dbsize", "dump", "expiretime", "hello", "hrandfield", "hscan", "info", "memory", "object", "pexpiretime", "pttl", "randomkey",
    "role", "scan", "spop", "srandmember", "sscan", "time", "ttl", "xadd", "xinfo", "zrandmember", "zscan",
];
/// Bytes of a parameter up to which it may be a key.
const KEY: usize = 512;

fn command(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Why a command may change something.
pub(super) fn writes(text: &str) -> Option<String> {
    (!READS.contains(&command(text))).then(|| format!("{} may change keys", command(text)))
}

/// Whether a command may wait for another client.
pub(super) fn waits(text: &str) -> bool {
    matches!(
        command(text),
        "BLMOVE" | "BLMPOP" | "BLPOP" | "BRPOP" | "BRPOPLPUSH" | "BZMPOP" | "BZPOPMAX" | "BZPOPMIN"
    )
}

/// Whether a command is not sent again.
pub(super) fn is_left_out(text: &str) -> bool {
    LEFT_OUT.contains(&command(text))
}

/// What may be keys among its parameters.
pub(super) fn keys(sent: &Sent) -> impl Iterator<Item = String> {
    sent.request.parameters.iter().filter_map(|one| match &one.value {
        Recorded::Bytes(bytes) if bytes.len() <= KEY => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// Appends a request, as an array of its words.
pub(super) fn push(out: &mut Vec<u8>, text: &str, sent: &Sent) -> Result<()> {
    let own: Vec<&[u8]> = text.split(' ').filter(|word| *word != "?").map(str::as_bytes).collect();
    let given = sent.request.parameters.iter().map(|one| match &one.value {
        Recorded::Bytes(bytes) => Ok(bytes.as_slice()),
        _ => Err(Error::usage("a value of the capture was not kept")),
    });
    let given: Vec<&[u8]> = given.collect::<Result<_>>()?;
    out.extend(format!("*{}\r\n", own.len() + given.len()).bytes());
    for word in own.into_iter().chain(given) {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend(word);
        out.extend(b"\r\n");
    }
    Ok(())
}
