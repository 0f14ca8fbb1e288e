//! What this driver knows of connections besides its own options.

use crate::prelude::*;

const NO_SRV: Meaning = Meaning::Refused("DNS records of hosts are not read: name the hosts with mongodb://");

const FOREIGN: &[ForeignOption] = &[
    ForeignOption { name: "srvServiceName", value: None, meaning: NO_SRV, from: "MongoDB's drivers" },
    ForeignOption { name: "srvMaxHosts", value: None, meaning: NO_SRV, from: "MongoDB's drivers" },
    ForeignOption {
        name: "loadBalanced",
        value: Some("false"),
        meaning: Meaning::Nothing("it is the default"),
        from: "MongoDB's drivers",
    },
    ForeignOption {
        name: "loadBalanced",
        value: Some("true"),
        meaning: Meaning::Refused("name the mongos themselves"),
        from: "MongoDB's drivers",
    },
    ForeignOption {
        name: "tlsCertificateKeyFilePassword",
        value: None,
        meaning: Meaning::Refused(
            "encrypted keys are not supported: openssl pkey -in KEY -out FILE writes a plain one",
        ),
        from: "MongoDB's drivers",
    },
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
    proxies: &[
        ("a replica set", "its primary, which is looked for again when it has changed"),
        ("mongos", "the first that is reached"),
        ("mongodb+srv:", "refused: name the hosts"),
    ],
};
