//! What this driver knows of connections besides its own options.

use crate::prelude::*;

const FOREIGN: &[ForeignOption] = &[
    ForeignOption::is("Aiven", "ssl_mode", None, "ssl-mode", None),
    ForeignOption::is("DigitalOcean", "sslmode", None, "ssl-mode", None),
    ForeignOption::is("Connector/J", "sslMode", None, "ssl-mode", None),
    ForeignOption::is("MySQL Shell", "ssl_ca", None, "ssl-ca", None),
    ForeignOption::is("MySQL Shell", "ssl_cert", None, "ssl-cert", None),
    ForeignOption::is("MySQL Shell", "ssl_key", None, "ssl-key", None),
    ForeignOption::is("Go-MySQL-Driver", "tls", Some("true"), "tls", Some("verify")),
    ForeignOption::is("Go-MySQL-Driver", "tls", Some("skip-verify"), "tls", Some("require")),
    ForeignOption::is("Go-MySQL-Driver", "tls", Some("false"), "tls", Some("off")),
    ForeignOption::is(
        "mysql2, PlanetScale",
        "ssl",
        Some("{\"rejectUnauthorized\":true}"),
        "tls",
        Some("verify"),
    ),
    ForeignOption::is("mysql2", "ssl", Some("{\"rejectUnauthorized\":false}"), "tls", Some("require")),
    ForeignOption::is("Prisma, PlanetScale", "sslaccept", Some("strict"), "tls", Some("verify")),
    ForeignOption::is("Prisma", "sslaccept", Some("accept_invalid_certs"), "tls", Some("require")),
    ForeignOption::is("Connector/J", "useSSL", Some("false"), "tls", Some("off")),
    ForeignOption::is("Connector/J", "allowPublicKeyRetrieval", None, "get_server_public_key", None),
    ForeignOption::ignored("Go-MySQL-Driver, Rails", "charset", Some("utf8mb4"), "it is always UTF-8"),
    ForeignOption::ignored("Go-MySQL-Driver, Rails", "charset", Some("utf8"), "it is always UTF-8"),
    ForeignOption::ignored("Go-MySQL-Driver", "parseTime", None, "times have types"),
    ForeignOption::ignored("Connector/J", "serverTimezone", None, "times are UTC"),
    ForeignOption::ignored("Prisma", "connection_limit", None, "--clients decides on connections"),
    ForeignOption::ignored("Prisma", "pool_timeout", None, "--clients decides on connections"),
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
    mode: super::config::tls,
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
