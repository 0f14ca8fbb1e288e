//! What this driver knows of connections besides its own options.

use crate::prelude::*;
use Meaning::{Nothing, Refused};

const DRIVERS: &str = "MongoDB's drivers";
const NO_SRV: &str = "DNS records of hosts are not read: name the hosts with mongodb://";
const PLAIN_KEYS: &str =
    "encrypted keys are not supported: openssl pkey -in KEY -out FILE writes a plain one";

const FOREIGN: &[ForeignOption] = &[
    ForeignOption::new(DRIVERS, "srvServiceName", None, Refused(NO_SRV)),
    ForeignOption::new(DRIVERS, "srvMaxHosts", None, Refused(NO_SRV)),
    ForeignOption::new(DRIVERS, "loadBalanced", Some("false"), Nothing("it is the default")),
    ForeignOption::new(DRIVERS, "loadBalanced", Some("true"), Refused("name the mongos themselves")),
    ForeignOption::new(DRIVERS, "tlsCertificateKeyFilePassword", None, Refused(PLAIN_KEYS)),
];

pub(super) const CONNECTIONS: Connections = Connections {
    foreign: FOREIGN,
    variables: &[("SSL_CERT_FILE", "the system's certificate authorities, where they are in another file")],
    files: &[],
    authentication: &[
        ("SCRAM-SHA-256, SCRAM-SHA-1", "without authMechanism, the better one that the user has"),
        ("MONGODB-X509", "by the certificate of tlsCertificateKeyFile="),
        ("PLAIN (LDAP)", "only over TLS or a Unix socket"),
        ("GSSAPI, MONGODB-AWS, MONGODB-OIDC, MONGODB-CR", "refused"),
    ],
    tls: &[
        ["tls=false", "the same", "plain text"],
        [
            "tls=true",
            "the same",
            "encrypted; of an authority in tlsCAFile= or the system's store, and for the host",
        ],
        ["tlsAllowInvalidHostnames=true", "the same", "encrypted; of such an authority, for any host"],
        ["tlsAllowInvalidCertificates=true", "the same", "encrypted; any certificate is accepted"],
    ],
    mode: super::config::tls,
    servers: super::config::servers,
    proxies: &[
        ("a replica set", "its primary, which is looked for again when it has changed"),
        ("mongos", "the first that is reached"),
        ("mongodb+srv:", "refused: name the hosts"),
    ],
};
