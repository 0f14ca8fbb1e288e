//! What this driver knows of connections besides its own options.

use crate::prelude::*;

const FOREIGN: &[ForeignOption] = &[
    ForeignOption {
        name: "ssl_cert_reqs",
        value: Some("none"),
        meaning: Meaning::Is("tls", Some("require")),
        from: "redis-py, Celery",
    },
    ForeignOption {
        name: "ssl_cert_reqs",
        value: Some("CERT_NONE"),
        meaning: Meaning::Is("tls", Some("require")),
        from: "redis-py, Celery",
    },
    ForeignOption {
        name: "ssl_cert_reqs",
        value: Some("required"),
        meaning: Meaning::Is("tls", Some("verify")),
        from: "redis-py, Celery",
    },
    ForeignOption {
        name: "ssl_cert_reqs",
        value: Some("CERT_REQUIRED"),
        meaning: Meaning::Is("tls", Some("verify")),
        from: "redis-py, Celery",
    },
    ForeignOption { name: "ssl_ca_certs", value: None, meaning: Meaning::Is("ca", None), from: "redis-py" },
    ForeignOption {
        name: "protocol",
        value: Some("3"),
        meaning: Meaning::Nothing("it is always RESP3"),
        from: "redis-py, go-redis",
    },
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
    proxies: &[
        ("Redis Cluster", "refused: name a standalone server"),
        ("Redis Sentinel", "refused: name the server that it watches"),
        ("twemproxy (nutcracker)", "closes the connection at HELLO: name the server itself"),
    ],
};
