//! What this driver knows of connections besides its own options.

use super::config;
use crate::prelude::*;
use Meaning::{Is, Nothing};

const FOREIGN: &[ForeignOption] = &[
    ForeignOption::new("redis-py, Celery", "ssl_cert_reqs", Some("none"), Is("tls", Some("require"))),
    ForeignOption::new("redis-py, Celery", "ssl_cert_reqs", Some("CERT_NONE"), Is("tls", Some("require"))),
    ForeignOption::new("redis-py, Celery", "ssl_cert_reqs", Some("required"), Is("tls", Some("verify"))),
    ForeignOption::new("redis-py, Celery", "ssl_cert_reqs", Some("CERT_REQUIRED"), Is("tls", Some("verify"))),
    ForeignOption::new("redis-py", "ssl_ca_certs", None, Is("ca", None)),
    ForeignOption::new("redis-py, go-redis", "protocol", Some("3"), Nothing("it is always RESP3")),
];

pub(super) const CONNECTIONS: Connections = Connections {
    foreign: FOREIGN,
    variables: &[("REDISCLI_AUTH, VALKEYCLI_AUTH", "the password, where the URL has none")],
    files: &[],
    authentication: &[
        ("a password (requirepass), a user with a password (ACL)", ""),
        ("a client's certificate", "by cert= and key="),
    ],
    tls: crate::info::TLS,
    mode: config::tls,
    servers: |url| Ok(vec![config::place(url).into()]),
    proxies: &[
        ("Redis Cluster", "refused: name a standalone server"),
        ("Redis Sentinel", "refused: name the server that it watches"),
        ("twemproxy (nutcracker)", "closes the connection at HELLO: name the server itself"),
    ],
};
