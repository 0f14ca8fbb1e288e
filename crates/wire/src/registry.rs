//! The protocols that can be decoded, one line each.

use crate::environment::Variables;
use crate::protocols::http::Http;
use crate::protocols::memcached::Memcached;
use crate::protocols::mongodb::Mongodb;
use crate::protocols::mysql::Mysql;
use crate::protocols::mysql_tls::{MysqlStart, MysqlTls};
use crate::protocols::postgres::Postgres;
use crate::protocols::postgres_tls::{PostgresStart, PostgresTls};
use crate::protocols::redis::Redis;
use crate::tls::{DirectStart, TlsRefusal, TlsStart};
use crate::view::Conversation;
use kurabe_protocol::sql::Dialect;

#[derive(Debug)]
pub struct Protocol {
    /// The schemes of URLs of its servers.
    pub schemes: &'static [&'static str],
    /// Begins to read a connection whose session reads SQL so.
    pub view: fn(Dialect) -> Conversation,
    /// Makes what refuses TLS on a connection, where TLS is a choice of the client's.
    pub refusal: Option<fn() -> Box<dyn TlsRefusal>>,
    /// Makes what finds the beginning of TLS on a connection.
    pub start: fn() -> Box<dyn TlsStart>,
    /// The variables by which its programs are told their server.
    pub variables: Variables,
}

#[rustfmt::skip]
pub static PROTOCOLS: &[Protocol] = &[
    Protocol { schemes: &["mysql", "mariadb"], view: |dialect| Conversation::after_greeting(Mysql::new(dialect)), refusal: Some(|| Box::<MysqlTls>::default()), start: || Box::<MysqlStart>::default(), variables: Variables::MYSQL },
    Protocol { schemes: &["postgres", "postgresql"], view: |dialect| Conversation::new(Postgres::new(dialect)), refusal: Some(|| Box::<PostgresTls>::default()), start: || Box::<PostgresStart>::default(), variables: Variables::POSTGRES },
    Protocol { schemes: &["redis", "valkey"], view: |_| Conversation::new(Redis::default()), refusal: None, start: direct_tls, variables: Variables::REDIS },
    Protocol { schemes: &["memcached"], view: |_| Conversation::new(Memcached::default()), refusal: None, start: direct_tls, variables: Variables::MEMCACHED },
    Protocol { schemes: &["mongodb"], view: |_| Conversation::new(Mongodb::default()), refusal: None, start: direct_tls, variables: Variables::MONGODB },
    Protocol { schemes: &["couchdb"], view: |_| Conversation::new(Http::couchdb()), refusal: None, start: direct_tls, variables: Variables::COUCHDB },
    Protocol { schemes: &["http"], view: |_| Conversation::new(Http::default()), refusal: None, start: direct_tls, variables: Variables::NONE },
];

fn direct_tls() -> Box<dyn TlsStart> {
    Box::<DirectStart>::default()
}

pub fn of_scheme(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.schemes.contains(&scheme))
}

/// The scheme without TLS of one whose connections begin with TLS: `redis` of `rediss`.
pub fn plain_scheme(scheme: &str) -> Option<&str> {
    scheme.strip_suffix('s').filter(|plain| of_scheme(plain).is_some())
}

pub fn schemes() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().flat_map(|protocol| protocol.schemes.iter().copied())
}
