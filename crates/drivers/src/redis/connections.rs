//! What this driver knows of connections besides its own options.

use super::config;
use crate::prelude::*;

const FOREIGN: &[ForeignOption] = &[
    ForeignOption::is("redis-py, Celery", "ssl_cert_reqs", Some("none"), "tls", Some("require")),
    ForeignOption::is("redis-py, Celery", "ssl_cert_reqs", Some("CERT_NONE"), "tls", Some("require")),
    ForeignOption::is("redis-py, Celery", "ssl_cert_reqs", Some("required"), "tls", Some("verify")),
    ForeignOption::is("redis-py, Celery", "ssl_cert_reqs", Some("CERT_REQUIRED"), "tls", Some("verify")),
    ForeignOption::is("redis-py", "ssl_ca_certs", None, "ca", None),
    ForeignOption::ignored("redis-py, go-redis", "protocol", Some("3"), "it is always RESP3"),
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
    proxies: &[
        ("Redis Cluster", "refused: name a standalone server"),
        ("Redis Sentinel", "refused: name the server that it watches"),
        ("twemproxy (nutcracker)", "closes the connection at HELLO: name the server itself"),
    ],
};
