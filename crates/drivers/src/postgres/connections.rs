//! What this driver knows of connections besides its own options.

use crate::prelude::*;
use Meaning::{Is, Nothing, Refused};

pub(super) const FOREIGN: &[ForeignOption] = &[
    ForeignOption::new("node-postgres, Heroku", "sslmode", Some("no-verify"), Is("tls", Some("require"))),
    ForeignOption::new("Prisma", "sslaccept", Some("strict"), Is("tls", Some("verify"))),
    ForeignOption::new("Prisma", "sslaccept", Some("accept_invalid_certs"), Is("tls", Some("require"))),
    ForeignOption::new(
        "JDBC, node-postgres, asyncpg",
        "ssl",
        None,
        Refused(
            "clients differ in its meaning: write sslmode=require, which checks nothing, or sslmode=verify-full",
        ),
    ),
    ForeignOption::new("Prisma", "schema", None, Is("search_path", None)),
    ForeignOption::new("JDBC", "currentSchema", None, Is("search_path", None)),
    ForeignOption::new("JDBC", "ApplicationName", None, Is("application_name", None)),
    ForeignOption::new("Prisma, Supabase", "pgbouncer", None, Nothing("a pooler is looked for in any case")),
    ForeignOption::new("Prisma", "connection_limit", None, Nothing("--clients decides on connections")),
    ForeignOption::new("Prisma", "pool_timeout", None, Nothing("--clients decides on connections")),
    ForeignOption::new("libpq", "gssencmode", Some("disable"), Nothing(NO_GSS)),
    ForeignOption::new("libpq", "gssencmode", Some("prefer"), Nothing(NO_GSS)),
    ForeignOption::new("libpq", "krbsrvname", None, Nothing(NO_GSS)),
    ForeignOption::new("libpq", "gsslib", None, Nothing(NO_GSS)),
    ForeignOption::new("libpq", "gssdelegation", None, Nothing(NO_GSS)),
    ForeignOption::new("libpq", "sslcompression", None, Nothing("TLS is never compressed")),
    ForeignOption::new("libpq", "sslsni", Some("1"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "sslsni", None, Refused("the name of the host is always sent")),
    ForeignOption::new("libpq", "sslcrldir", Some(""), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "sslkeylogfile", Some(""), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "require_auth", Some(""), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "requirepeer", Some(""), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "replication", Some("false"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "replication", Some("0"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "ssl_max_protocol_version", Some(""), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "ssl_max_protocol_version", Some("TLSv1.3"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "min_protocol_version", Some("3.0"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "max_protocol_version", Some("3.0"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "max_protocol_version", Some("latest"), Nothing("the protocol is 3.0")),
    ForeignOption::new("libpq", "sslnegotiation", Some("postgres"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "sslcertmode", Some("allow"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "ssl_min_protocol_version", Some("TLSv1"), Nothing(TLS_1_2)),
    ForeignOption::new("libpq", "ssl_min_protocol_version", Some("TLSv1.1"), Nothing(TLS_1_2)),
    ForeignOption::new("libpq", "ssl_min_protocol_version", Some("TLSv1.2"), Nothing(TLS_1_2)),
    ForeignOption::new("libpq", "requiressl", Some("0"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "load_balance_hosts", Some("disable"), Nothing(DEFAULT)),
    ForeignOption::new("libpq", "client_encoding", Some("utf8"), Nothing("it is always UTF-8")),
    ForeignOption::new("libpq", "client_encoding", Some("utf-8"), Nothing("it is always UTF-8")),
    ForeignOption::new("libpq", "client_encoding", Some("auto"), Nothing("it is always UTF-8")),
    ForeignOption::new("libpq", "client_encoding", None, Refused("the text of every connection is UTF-8")),
    ForeignOption::new("libpq", "keepalives", None, Nothing(KEEPALIVE)),
    ForeignOption::new("libpq", "keepalives_idle", None, Nothing(KEEPALIVE)),
    ForeignOption::new("libpq", "keepalives_interval", None, Nothing(KEEPALIVE)),
    ForeignOption::new("libpq", "keepalives_count", None, Nothing(KEEPALIVE)),
    ForeignOption::new("libpq", "tcp_user_timeout", None, Nothing(KEEPALIVE)),
    ForeignOption::new("libpq", "fallback_application_name", None, Nothing("application_name is kurabe")),
    ForeignOption::new(
        "libpq",
        "sslpassword",
        None,
        Refused("encrypted keys are not supported: openssl pkey -in KEY -out FILE writes a plain one"),
    ),
];

const NO_GSS: &str = "GSSAPI is not supported";
const DEFAULT: &str = "it is the default";
const TLS_1_2: &str = "TLS is 1.2 or newer";
const KEEPALIVE: &str = "--timeout decides how long a silent server is waited for";

pub(super) const CONNECTIONS: Connections = Connections {
    foreign: FOREIGN,
    variables: &[
        ("PGHOST, PGHOSTADDR", "the hosts, where neither the URL nor the service names one"),
        ("PGPORT", "the port, where the URL names none"),
        ("PGUSER, PGPASSWORD, PGDATABASE", "user, password and database, where the URL names none"),
        (
            "PGSERVICE, PGSERVICEFILE, PGSYSCONFDIR",
            "the service, its file, and the folder of the one for all users",
        ),
        ("PGPASSFILE", "the password file"),
        ("PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY, PGSSLCRL", "TLS, of connections over TCP"),
        (
            "PGTARGETSESSIONATTRS, PGCONNECT_TIMEOUT, PGAPPNAME, PGCHANNELBINDING",
            "as the options of these names",
        ),
        (
            "PGOPTIONS, PGTZ, PGDATESTYLE, PGGEQO, PGCLIENTENCODING",
            "not read: what affects results is in the target",
        ),
        (
            "PGREQUIREPEER, PGREQUIREAUTH, PGGSSENCMODE, PGREQUIRESSL, PGSSLCRLDIR, PGSSLCERTMODE, PGSSLMINPROTOCOLVERSION",
            "refused where they ask for more than this driver can do",
        ),
        ("SSL_CERT_FILE", "the system's certificate authorities, where they are in another file"),
    ],
    files: &[
        ("~/.pg_service.conf, /etc/postgresql-common/pg_service.conf", "services: parameters by name"),
        ("~/.pgpass", "passwords; ignored if others can read it"),
        (
            "~/.postgresql/root.crt, root.crl",
            "authorities and revoked certificates of verify-ca and verify-full",
        ),
        ("~/.postgresql/postgresql.crt, postgresql.key", "the client's certificate"),
    ],
    authentication: &[
        ("trust, peer, ident", ""),
        ("password", "only over TLS or a Unix socket"),
        ("md5", ""),
        ("scram-sha-256", ""),
        ("scram-sha-256 with channel binding (SCRAM-SHA-256-PLUS)", ""),
        ("cert", "by sslcert= and sslkey=; encrypted keys are refused"),
        (
            "gss, sspi, ldap, radius, pam, bsd",
            "gss and sspi are refused; the others request the password in plain text",
        ),
    ],
    tls: &[
        ["tls=off or sslmode=disable", "sslmode=disable", "plain text"],
        ["sslmode=allow, prefer", "the same", "refused: two runs could differ in it"],
        ["sslmode=require", "the same", "encrypted; with a root.crt, as verify-ca"],
        ["tls=require", "sslmode=require without root.crt", "encrypted; any certificate is accepted"],
        ["sslmode=verify-ca", "the same", "the certificate is of an authority in the root file"],
        ["sslmode=verify-full", "the same", "and for the host"],
        [
            "tls=verify",
            "sslmode=verify-full sslrootcert=system",
            "of an authority in ca= or the system's store, and for the host",
        ],
        ["sslcrl=FILE", "the same", "refused if revoked, or if the authority has no list in the file"],
    ],
    mode: super::tls::of_url,
    servers: super::config::servers,
    proxies: &[
        (
            "PgBouncer, pgcat, Odyssey in session mode, Pgpool-II",
            "a note names it; the server's processes are not observed",
        ),
        (
            "the same in transaction mode, where prepared statements stay with their session (PgBouncer 1.21 or newer: \
             max_prepared_statements)",
            "a note names it; the lease is held by a transaction, which takes one of its connections; server statistics, \
             read-only workloads, --durability, options=, search_path=, copies and pg_dump are refused, since they need a \
             session of their own",
        ),
        (
            "the same in transaction mode without them, or in statement mode",
            "refused before anything is made",
        ),
        (
            "a standby, a role that may only SELECT",
            "what reads tables that are there runs without a table or a lease",
        ),
        (
            "CockroachDB, YugabyteDB, Aurora, Redshift, Neon and others that speak the protocol",
            "named as themselves; the durability class is unknown",
        ),
        ("several hosts", "the first that is wanted is measured"),
    ],
};
