//! The supported protocols, one file each.

pub(super) mod http;
pub(super) mod memcached;
pub(super) mod mongodb;
pub(super) mod mysql;
pub(super) mod postgres;
pub(super) mod resp;
