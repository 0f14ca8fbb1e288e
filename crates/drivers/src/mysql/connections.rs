//! What this driver knows of connections besides its own options.

use crate::prelude::*;

const FOREIGN: &[ForeignOption] = &[
    ForeignOption { name: "ssl_mode", value: None, meaning: Meaning::Is("ssl-mode", None), from: "Aiven" },
    ForeignOption {
        name: "sslmode",
        value: None,
        meaning: Meaning::Is("ssl-mode", None),
        from: "DigitalOcean",
    },
    ForeignOption {
        name: "sslMode",
        value: None,
        meaning: Meaning::Is("ssl-mode", None),
        from: "Connector/J",
    },
    ForeignOption { name: "ssl_ca", value: None, meaning: Meaning::Is("ssl-ca", None), from: "MySQL Shell" },
    ForeignOption {
        name: "ssl_cert",
        value: None,
        meaning: Meaning::Is("ssl-cert", None),
        from: "MySQL Shell",
    },
    ForeignOption {
        name: "ssl_key",
        value: None,
        meaning: Meaning::Is("ssl-key", None),
        from: "MySQL Shell",
    },
    ForeignOption {
        name: "tls",
        value: Some("true"),
        meaning: Meaning::Is("tls", Some("verify")),
        from: "Go-MySQL-Driver",
    },
    ForeignOption {
        name: "tls",
        value: Some("skip-verify"),
        meaning: Meaning::Is("tls", Some("require")),
        from: "Go-MySQL-Driver",
    },
    ForeignOption {
        name: "tls",
        value: Some("false"),
        meaning: Meaning::Is("tls", Some("off")),
        from: "Go-MySQL-Driver",
    },
    ForeignOption {
        name: "ssl",
        value: Some("{\"rejectUnauthorized\":true}"),
        meaning: Meaning::Is("tls", Some("verify")),
        from: "mysql2, PlanetScale",
    },
    ForeignOption {
        name: "ssl",
        value: Some("{\"rejectUnauthorized\":false}"),
        meaning: Meaning::Is("tls", Some("require")),
        from: "mysql2",
    },
    ForeignOption {
        name: "sslaccept",
        value: Some("strict"),
        meaning: Meaning::Is("tls", Some("verify")),
        from: "Prisma, PlanetScale",
    },
    ForeignOption {
        name: "sslaccept",
        value: Some("accept_invalid_certs"),
        meaning: Meaning::Is("tls", Some("require")),
        from: "Prisma",
    },
    ForeignOption {
        name: "useSSL",
        value: Some("false"),
        meaning: Meaning::Is("tls", Some("off")),
        from: "Connector/J",
    },
    ForeignOption {
        name: "allowPublicKeyRetrieval",
        value: None,
        meaning: Meaning::Is("get_server_public_key", None),
        from: "Connector/J",
    },
    ForeignOption {
        name: "charset",
        value: Some("utf8mb4"),
        meaning: Meaning::Nothing("it is always UTF-8"),
        from: "Go-MySQL-Driver, Rails",
    },
    ForeignOption {
        name: "charset",
        value: Some("utf8"),
        meaning: Meaning::Nothing("it is always UTF-8"),
        from: "Go-MySQL-Driver, Rails",
    },
    ForeignOption {
        name: "parseTime",
        value: None,
        meaning: Meaning::Nothing("times have types"),
        from: "Go-MySQL-Driver",
    },
    ForeignOption {
        name: "serverTimezone",
        value: None,
        meaning: Meaning::Nothing("times are UTC"),
        from: "Connector/J",
    },
    ForeignOption {
        name: "connection_limit",
        value: None,
        meaning: Meaning::Nothing("--clients decides on connections"),
        from: "Prisma",
    },
    ForeignOption {
        name: "pool_timeout",
        value: None,
        meaning: Meaning::Nothing("--clients decides on connections"),
        from: "Prisma",
    },
];

pub(super) const CONNECTIONS: Connections = Connections {
    foreign: FOREIGN,
    variables: &[
        ("MYSQL_PWD", "the password, where the URL has none"),
        ("HOME", "the folder of .my.cnf"),
        ("SSL_CERT_FILE", "the system's certificate authorities, where they are in another file"),
    ],
    files: &[
        (
            "/etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf",
            "[client] and, as in MariaDB, [client-server] and [client-mariadb]: user, \
          password, host, port, socket, database, ssl-…; later files win; !include and !includedir are followed",
        ),
        ("~/.mylogin.cnf", "not read"),
    ],
    authentication: &[
        (
            "caching_sha2_password",
            "over plain TCP only with get_server_public_key=true or server_public_key_path=",
        ),
        ("mysql_native_password", ""),
        ("client_ed25519 (MariaDB)", ""),
        ("mysql_clear_password (PAM, LDAP)", "with enable_cleartext_plugin=true and tls=verify"),
        ("a client's certificate (REQUIRE X509)", "by cert= and key=; encrypted keys are refused"),
        (
            "parsec (MariaDB), sha256_password, auth_gssapi_client, mysql_old_password, WebAuthn, Kerberos, OpenID Connect",
            "refused by name",
        ),
    ],
    tls: &[
        ["tls=off or ssl-mode=DISABLED", "mysql: ssl-mode=DISABLED; mariadb: skip-ssl", "plain text"],
        ["ssl-mode=PREFERRED", "the same", "refused: two runs could differ in it"],
        [
            "tls=require or ssl-mode=REQUIRED",
            "mysql: ssl-mode=REQUIRED; mariadb: ssl",
            "encrypted; any certificate is accepted",
        ],
        ["ssl-mode=VERIFY_CA", "the same; ssl-ca alone", "the certificate is of the authority in ssl-ca"],
        ["ssl-mode=VERIFY_IDENTITY", "mysql: the same; mariadb: ssl-verify-server-cert", "and for the host"],
        ["tls=verify", "", "of an authority in ca= or the system's store, and for the host"],
        ["ssl-crl", "the same", "refused if revoked, or if the authority has no list in the file"],
        ["ssl-crlpath, ssl-capath", "the same", "refused by name"],
    ],
    proxies: &[
        (
            "ProxySQL, MaxScale, MySQL Router: the greeting has another number of the connection than the server's list",
            "a note names it; refused if clients share connections; tried with MySQL Router 9.7 and with a stand-in for the \
             others",
        ),
        (
            "super_read_only, read_only, a user who may only SELECT",
            "what reads tables that are there runs without a table or a lease",
        ),
        (
            "TiDB, Aurora, Vitess, SingleStore, OceanBase and others that speak the protocol",
            "named as themselves; the durability class is unknown",
        ),
    ],
};
