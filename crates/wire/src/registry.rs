//! The protocols that can be decoded, one line each.

use crate::decoder::{Decode, Decoder, TlsRefusal, TlsStart};
use crate::environment::Variables;
use crate::protocols::direct_tls::DirectStart;
use crate::protocols::http::Http;
use crate::protocols::http_view::Http as HttpView;
use crate::protocols::memcached::Memcached;
use crate::protocols::memcached_view::Memcached as MemcachedView;
use crate::protocols::mongodb::Mongodb;
use crate::protocols::mongodb_view::Mongodb as MongodbView;
use crate::protocols::mysql::Mysql;
use crate::protocols::mysql_tls::{MysqlStart, MysqlTls};
use crate::protocols::mysql_view::Mysql as MysqlView;
use crate::protocols::postgres::Postgres;
use crate::protocols::postgres_tls::{PostgresStart, PostgresTls};
use crate::protocols::postgres_view::Postgres as PostgresView;
use crate::protocols::redis::Redis;
use crate::protocols::redis_view::Redis as RedisView;
use crate::reader::UntilStop;
use crate::view::{ReadExchanges, View};
use std::fmt;

pub struct Protocol {
    /// The schemes of URLs of its servers.
    pub schemes: &'static [&'static str],
    /// Makes a decoder for a connection.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// Makes a view of a connection for a recorder.
    pub view: fn() -> Box<dyn View>,
    /// Makes what refuses TLS on a connection, where TLS is a choice of the client's.
    pub refusal: Option<fn() -> Box<dyn TlsRefusal>>,
    /// Makes what finds the beginning of TLS on a connection.
    pub start: fn() -> Box<dyn TlsStart>,
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
    Protocol { schemes: &["mysql", "mariadb"], decoder: || Box::new(UntilStop::after_greeting(Mysql::default())), view: || Box::new(UntilStop::after_greeting(MysqlView::default())), refusal: Some(|| Box::<MysqlTls>::default()), start: || Box::<MysqlStart>::default(), variables: Variables::MYSQL },
    Protocol { schemes: &["postgres", "postgresql"], decoder: decoder::<Postgres>, view: view::<PostgresView>, refusal: Some(|| Box::<PostgresTls>::default()), start: || Box::<PostgresStart>::default(), variables: Variables::POSTGRES },
    Protocol { schemes: &["redis", "valkey"], decoder: decoder::<Redis>, view: view::<RedisView>, refusal: None, start: direct_tls, variables: Variables::REDIS },
    Protocol { schemes: &["memcached"], decoder: decoder::<Memcached>, view: view::<MemcachedView>, refusal: None, start: direct_tls, variables: Variables::MEMCACHED },
    Protocol { schemes: &["mongodb"], decoder: decoder::<Mongodb>, view: view::<MongodbView>, refusal: None, start: direct_tls, variables: Variables::MONGODB },
    Protocol { schemes: &["couchdb"], decoder: || Box::new(UntilStop::new(Http::couchdb())), view: || Box::new(UntilStop::new(HttpView::couchdb())), refusal: None, start: direct_tls, variables: Variables::COUCHDB },
    Protocol { schemes: &["http"], decoder: decoder::<Http>, view: view::<HttpView>, refusal: None, start: direct_tls, variables: Variables::NONE },
];

fn decoder<D: Decode + Default + 'static>() -> Box<dyn Decoder> {
    Box::new(UntilStop::new(D::default()))
}

fn view<R: ReadExchanges + Default + 'static>() -> Box<dyn View> {
    Box::new(UntilStop::new(R::default()))
}

fn direct_tls() -> Box<dyn TlsStart> {
    Box::<DirectStart>::default()
}

/// The protocol of a URL's scheme.
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
