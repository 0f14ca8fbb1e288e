use super::super::concerns::Acknowledged;
use super::super::credential::Mechanism;
use super::*;
use crate::scram::Hash;

fn config(url: &str) -> Result<Config> {
    Config::from_url(&TargetUrl::parse(url).unwrap())
}

fn refused(url: &str) -> String {
    config(url).unwrap_err().to_string()
}

fn tcp(host: &str, port: u16) -> Place {
    Place::Tcp { host: host.to_owned(), port }
}

#[test]
fn common_connection_string_options_are_parsed() {
    let config = config(
        "mongodb://app:p%40ss@a.example:27018,b.example/shop?replicaSet=rs&w=majority&journal=true&wTimeoutMS=500\
         &readConcernLevel=majority&compressors=snappy,zstd,zlib&zlibCompressionLevel=9&authSource=admin\
         &retryWrites=true&connectTimeoutMS=0&serverSelectionTimeoutMS=30000&appName=shop",
    )
    .unwrap();
    assert_eq!(config.place(), "a.example:27018,b.example:27017");
    assert_eq!(config.hosts, [tcp("a.example", 27_018), tcp("b.example", 27_017)]);
    assert_eq!((config.database.as_str(), config.set.as_deref()), ("shop", Some("rs")));
    let writes = WriteConcern { w: Some(Acknowledged::Majority), journal: Some(true), timeout: Some(500) };
    assert_eq!((&config.writes, config.reads.as_deref()), (&writes, Some("majority")));
    assert_eq!(config.compressors, [Method::Zstd, Method::Zlib(9)]);
    assert_eq!((config.connect_timeout, config.selection_timeout), (Duration::MAX, Duration::from_secs(30)));
    assert!(config.retries_writes && !config.is_direct && config.application == "shop");
    let credential = config.credential.clone().unwrap();
    assert_eq!((credential.user.as_deref(), credential.password.expose()), (Some("app"), "p@ss"));
    assert!(!format!("{config:?}").contains("p@ss") && !format!("{config:?}").contains("p%40ss"));
}

#[test]
fn defaults_are_localhost_and_database_kurabe() {
    let config = config("mongodb:").unwrap();
    assert_eq!((config.place().as_str(), config.database.as_str()), ("127.0.0.1:27017", "kurabe"));
    assert!(config.tls.is_off() && config.credential.is_none() && config.preference.is_none());
    assert_eq!((config.writes, config.reads, config.retries_writes), (WriteConcern::default(), None, false));
    assert_eq!(config.compressors, []);
}

#[test]
fn mechanism_decides_on_database_of_the_user_and_what_is_needed() {
    let credential = |url: &str| config(url).unwrap().credential.unwrap();
    for (url, mechanism, source) in [
        ("mongodb://u:p@h", Mechanism::Scram(None), "admin"),
        ("mongodb://u:p@h/shop", Mechanism::Scram(None), "shop"),
        ("mongodb://u:p@h/shop?authSource=users", Mechanism::Scram(None), "users"),
        ("mongodb://u:p@h/?authMechanism=SCRAM-SHA-1", Mechanism::Scram(Some(Hash::Sha1)), "admin"),
        ("mongodb://u:p@h/shop?authMechanism=SCRAM-SHA-256", Mechanism::Scram(Some(Hash::Sha256)), "shop"),
        ("mongodb://u:p@h?authMechanism=PLAIN", Mechanism::Plain, "$external"),
        ("mongodb://u:p@h/ldap?authMechanism=PLAIN", Mechanism::Plain, "ldap"),
    ] {
        let found = credential(url);
        assert_eq!((found.mechanism, found.source.as_str()), (mechanism, source), "{url}");
    }
    assert_eq!(credential("mongodb://a%3Ab:p%2F%3A@h").user.as_deref(), Some("a:b"));
    assert_eq!(credential("mongodb://u:@h").password.expose(), "");
    for (url, part) in [
        ("mongodb://u@h", "no password"),
        ("mongodb://h?authMechanism=SCRAM-SHA-256", "needs a user"),
        ("mongodb://h?authMechanism=MONGODB-X509", "needs tlsCertificateKeyFile"),
        ("mongodb://u:hunter2@h?authMechanism=MONGODB-X509", "without a password"),
        ("mongodb://h?authMechanism=MONGODB-X509&authSource=admin", "no authSource but $external"),
        (
            "mongodb://u:hunter2@h?authMechanism=GSSAPI",
            "one of: SCRAM-SHA-256, SCRAM-SHA-1, MONGODB-X509, PLAIN",
        ),
        ("mongodb://u:hunter2@h?authMechanism=MONGODB-CR", "MONGODB-CR is unknown"),
        ("mongodb://u:hunter2@h?authSource=", "names no database"),
    ] {
        let message = refused(url);
        assert!(message.contains(part) && !message.contains("hunter2"), "{url}: {message}");
    }
}

#[test]
fn options_of_tls_decide_how_certificates_are_checked() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    let check = |options: &str| match config(&format!("mongodb://h?{options}")).unwrap().tls {
        tls::Mode::Off => None,
        tls::Mode::On { wanted, .. } => Some(wanted.check),
    };
    for options in ["", "tls=false", "ssl=false", "tls=false&ssl=false"] {
        assert_eq!(check(options), None, "{options}");
    }
    for (options, expected) in [
        ("ssl=true&tlsAllowInvalidCertificates=true", Check::Nothing),
        ("tls=true&tlsInsecure=true", Check::Nothing),
        ("tlsInsecure=true", Check::Nothing),
    ] {
        assert_eq!(check(options), Some(expected), "{options}");
    }
    for (options, part) in [
        ("tls=true&ssl=false", "contradict"),
        ("tls=yes", "neither true nor false"),
        ("tls=false&tlsInsecure=true", "does not go with"),
        ("tlsInsecure=true&tlsAllowInvalidCertificates=true", "tlsInsecure"),
        ("tlsInsecure=false&tlsAllowInvalidHostnames=false", "tlsInsecure"),
        (&format!("tls=true&tlsCAFile={path}"), "contains no certificate"),
        (&format!("tlsCertificateKeyFile={path}&tlsInsecure=true"), "client's certificate"),
        ("tls=true&socket=/tmp/mongo.sock", "Unix socket"),
    ] {
        let message = refused(&format!("mongodb://h?{options}"));
        assert!(message.contains(part), "{options}: {message}");
    }
}

#[test]
fn hosts_are_a_list_of_names_addresses_and_sockets() {
    let hosts = |url: &str| config(url).unwrap().hosts;
    let socket = || Place::Unix("/tmp/mongodb-1.sock".into());
    assert_eq!(
        hosts("mongodb://[::1]:5,h,%2Ftmp%2Fmongodb-1.sock,[fe80::1]/db"),
        [tcp("::1", 5), tcp("h", 27_017), socket(), tcp("fe80::1", 27_017),]
    );
    assert_eq!(hosts("mongodb://[::1]"), [tcp("::1", 27_017)]);
    for url in ["a,", ",a", "a,,b", "a:0,b", "a:65536,b", "a:,b", "[::1,b", "[::1]x,b", "a,:1"] {
        let message = refused(&format!("mongodb://{url}/db"));
        assert!(message.contains("is no host"), "{url}: {message}");
    }
    let message = refused("mongodb+srv://bob:hunter2@cluster.example.net/shop?retryWrites=true&w=majority");
    assert!(message.contains("dig +short SRV _mongodb._tcp.cluster.example.net"), "{message}");
    assert!(!message.contains("hunter2"));
}

#[test]
fn one_server_has_an_endpoint_and_several_have_none() {
    let endpoint = |url: &str| config(url).unwrap().endpoint();
    let tcp = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
    assert_eq!(endpoint("mongodb:"), tcp("127.0.0.1", 27_017));
    assert_eq!(endpoint("mongodb://[::1]:5/db"), tcp("::1", 5));
    assert!(matches!(endpoint("mongodb://a.example,b.example/db"), Endpoint::Elsewhere(_)));
    for url in ["mongodb://%2Ftmp%2Fmongo/db", "mongodb://localhost/db?socket=/tmp/mongo"] {
        assert_eq!(endpoint(url), Endpoint::Unix("/tmp/mongo".into()), "{url}");
    }
}

#[test]
fn read_preference_is_used_and_pool_sizes_are_ignored() {
    let all = config(
        "mongodb://a,b/shop?readPreference=secondaryPreferred&readPreferenceTags=dc:tokyo&maxStalenessSeconds=90\
         &maxPoolSize=10&minPoolSize=2&maxIdleTimeMS=1000&waitQueueTimeoutMS=500&maxConnecting=3",
    )
    .unwrap();
    let preference = all.preference.unwrap();
    assert_eq!((preference.name(), preference.staleness), ("secondaryPreferred", Some(90)));
    assert_eq!((preference.tags, all.pool_size), (vec![("dc".to_owned(), "tokyo".to_owned())], Some(10)));
    assert!(config("mongodb://a/shop?readPreference=primary").unwrap().preference.is_none());
}

#[test]
fn invalid_options_are_reported_without_the_password() {
    for (options, part) in [
        ("readPreference=slave", "slave"),
        ("readPreferenceTags=dc:a", "readPreference=primary"),
        ("readPreference=nearest&readPreferenceTags=dc", "'dc' is not name:value"),
        ("readPreference=nearest&maxStalenessSeconds=10", "below 90"),
        ("readPreference=nearest&maxStalenessSeconds=soon", "no such number"),
        ("maxPoolSize=0", "maxPoolSize"),
        ("minPoolSize=-1", "minPoolSize"),
        ("w=0", "unacknowledged"),
        ("w=-1", "neither a number"),
        ("w=", "neither a number"),
        ("journal=yes", "journal=yes"),
        ("wTimeoutMS=-5", "wTimeoutMS"),
        ("readConcernLevel=lokal", "lokal is unknown"),
        ("compressors=snappy", "zstd or zlib"),
        ("compressors=lz4", "compressors=lz4"),
        ("compressors=zlib&zlibCompressionLevel=10", "-1 to 9"),
        ("retryWrites=1", "retryWrites=1"),
        ("retryReads=no", "retryReads=no"),
        ("connectTimeoutMS=-1", "connectTimeoutMS"),
        ("replicaSet=", "names no replica set"),
        ("directConnection=maybe", "directConnection"),
    ] {
        let message = refused(&format!("mongodb://bob:hunter2@h/db?{options}"));
        assert!(message.starts_with("mongodb: ") && message.contains(part), "{options}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert!(refused("mongodb://a,b/db?directConnection=true").contains("one host"));
    for w in ["1", "3", "majority", "rack2"] {
        assert!(config(&format!("mongodb://h?w={w}&maxStalenessSeconds=-1")).is_ok(), "{w}");
    }
}
