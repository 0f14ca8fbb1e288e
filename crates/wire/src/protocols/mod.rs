//! The protocols, one file each.

pub(crate) mod http;
mod http_body;
mod http_request;
pub(crate) mod memcached;
pub(crate) mod mongodb;
mod mongodb_answer;
pub(crate) mod mysql;
pub(crate) mod mysql_tls;
pub(crate) mod postgres;
pub(crate) mod postgres_tls;
pub(crate) mod redis;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
