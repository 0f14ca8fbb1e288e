//! What this driver knows of connections besides its own options.

use crate::prelude::*;
use Meaning::{Is, Nothing};

const FOREIGN: &[ForeignOption] = &[
    ForeignOption::new("Aiven", "ssl_mode", None, Is("ssl-mode", None)),
    ForeignOption::new("DigitalOcean", "sslmode", None, Is("ssl-mode", None)),
    ForeignOption::new("Connector/J", "sslMode", None, Is("ssl-mode", None)),
    ForeignOption::new("MySQL Shell", "ssl_ca", None, Is("ssl-ca", None)),
    ForeignOption::new("MySQL Shell", "ssl_cert", None, Is("ssl-cert", None)),
    ForeignOption::new("MySQL Shell", "ssl_key", None, Is("ssl-key", None)),
    ForeignOption::new("Go-MySQL-Driver", "tls", Some("true"), Is("tls", Some("verify"))),
    ForeignOption::new("Go-MySQL-Driver", "tls", Some("skip-verify"), Is("tls", Some("require"))),
    ForeignOption::new("Go-MySQL-Driver", "tls", Some("false"), Is("tls", Some("off"))),
    ForeignOption::new(
        "mysql2, PlanetScale",
        "ssl",
        Some("{\"rejectUnauthorized\":true}"),
        Is("tls", Some("verify")),
    ),
    ForeignOption::new("mysql2", "ssl", Some("{\"rejectUnauthorized\":false}"), Is("tls", Some("require"))),
    ForeignOption::new("Prisma, PlanetScale", "sslaccept", Some("strict"), Is("tls", Some("verify"))),
    ForeignOption::new("Prisma", "sslaccept", Some("accept_invalid_certs"), Is("tls", Some("require"))),
    ForeignOption::new("Connector/J", "useSSL", Some("false"), Is("tls", Some("off"))),
    ForeignOption::new("Connector/J", "allowPublicKeyRetrieval", None, Is("get_server_public_key", None)),
    ForeignOption::new("Go-MySQL-Driver, Rails", "charset", Some("utf8mb4"), Nothing("it is always UTF-8")),
    ForeignOption::new("Go-MySQL-Driver, Rails", "charset", Some("utf8"), Nothing("it is always UTF-8")),
    ForeignOption::new("Go-MySQL-Driver", "parseTime", None, Nothing("times have types")),
    ForeignOption::new("Connector/J", "serverTimezone", None, Nothing("times are UTC")),
    ForeignOption::new("Prisma", "connection_limit", None, Nothing("--clients decides on connections")),
    ForeignOption::new("Prisma", "pool_timeout", None, Nothing("--clients decides on connections")),
];

pub(super) const CONNECTIONS: Connections = Connections {
    foreign: FOREIGN,
    variables: &[
        ("MYSQL_PWD", "the password, where neither the URL nor an option file has one"),
        (
            "MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_UNIX_PORT",
            "not read: the URL or an option file names the server",
        ),
        ("HOME", "the folder of .my.cnf"),
        ("SSL_CERT_FILE", "the system's certificate authorities, where they are in another file"),
    ],
    files: &[
        (
            "/etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf",
            "[client] and, as in MariaDB, [client-server] and [client-mariadb]: user, \
          password, host, port, socket, protocol, database, ssl-…; later files win; !include and !includedir are followed; a file that everybody can write is ignored",
        ),
        ("~/.mylogin.cnf", "not read; a note, or the error of a login, says so"),
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
        ["ssl-crlpath, ssl-capath, tls-version and other ssl-, tls- options", "the same", "refused by name"],
    ],
    mode: super::config::tls,
    servers: super::config::servers,
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
