//! The protocols that can be decoded, one line each.

use crate::decoder::{Decoder, TlsRefusal};
use crate::environment::Variables;
use crate::protocols::http::Http;
use crate::protocols::memcached::Memcached;
use crate::protocols::memcached_view::Memcached as MemcachedView;
use crate::protocols::mongodb::Mongodb;
use crate::protocols::mysql::Mysql;
use crate::protocols::mysql_tls::MysqlTls;
use crate::protocols::mysql_view::Mysql as MysqlView;
use crate::protocols::postgres::Postgres;
use crate::protocols::postgres_tls::PostgresTls;
use crate::protocols::postgres_view::Postgres as PostgresView;
use crate::protocols::redis::Redis;
use crate::protocols::redis_view::Redis as RedisView;
use crate::view::View;
use std::fmt;

pub struct Protocol {
    /// The schemes of URLs of its servers.
    pub schemes: &'static [&'static str],
    /// The port that such a URL means if it names none.
    pub port: u16,
    /// Makes a decoder for a connection.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// Makes a view of a connection for a recorder, where there is one.
    pub view: Option<fn() -> Box<dyn View>>,
    /// Makes what refuses TLS on a connection, where TLS is a choice of the client's.
    pub refusal: Option<fn() -> Box<dyn TlsRefusal>>,
    /// The variables by which its programs are told their server.
    pub variables: Variables,
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol({:?})", self.schemes)
    }
}

/// All of them.
#[rustfmt::skip]
pub static PROTOCOLS: &[Protocol] = &[
    Protocol { schemes: &["mysql", "mariadb"], port: 3306, decoder: || Box::<Mysql>::default(), view: Some(|| Box::<MysqlView>::default()), refusal: Some(|| Box::<MysqlTls>::default()), variables: Variables::MYSQL },
    Protocol { schemes: &["postgres", "postgresql"], port: 5432, decoder: || Box::<Postgres>::default(), view: Some(|| Box::<PostgresView>::default()), refusal: Some(|| Box::<PostgresTls>::default()), variables: Variables::POSTGRES },
    Protocol { schemes: &["redis", "valkey"], port: 6379, decoder: || Box::<Redis>::default(), view: Some(|| Box::<RedisView>::default()), refusal: None, variables: Variables::REDIS },
    Protocol { schemes: &["memcached"], port: 11211, decoder: || Box::<Memcached>::default(), view: Some(|| Box::<MemcachedView>::default()), refusal: None, variables: Variables::MEMCACHED },
    Protocol { schemes: &["mongodb"], port: 27017, decoder: || Box::<Mongodb>::default(), view: None, refusal: None, variables: Variables::MONGODB },
    Protocol { schemes: &["couchdb"], port: 5984, decoder: || Box::new(Http::couchdb()), view: None, refusal: None, variables: Variables::COUCHDB },
    Protocol { schemes: &["http"], port: 80, decoder: || Box::<Http>::default(), view: None, refusal: None, variables: Variables::NONE },
];

/// The protocol of a URL's scheme.
pub fn of_scheme(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.schemes.contains(&scheme))
}

pub fn schemes() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().flat_map(|protocol| protocol.schemes.iter().copied())
}
