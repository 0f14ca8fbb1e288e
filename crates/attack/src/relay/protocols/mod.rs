//! The supported protocols, one file each.

mod http;
mod memcached;
mod mongodb;
mod mysql;
mod postgres;
mod resp;

use crate::relay::protocol::Protocol;

/// The protocol of a URL's scheme.
pub fn of_scheme(scheme: &str) -> Option<Box<dyn Protocol>> {
    Some(match scheme {
        "redis" | "valkey" => Box::new(resp::Resp),
        "memcached" => Box::<memcached::Memcached>::default(),
        "mysql" | "mariadb" => Box::<mysql::Mysql>::default(),
        "postgres" => Box::<postgres::Postgres>::default(),
        "couchdb" | "http" => Box::new(http::Http),
        "mongodb" => Box::new(mongodb::Mongodb),
        _ => return None,
    })
}
