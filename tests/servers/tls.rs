//! The decision to connect, or not, by TLS mode and certificate: the same as that of the engine's own client.

use crate::support::Place;
use kurabe_testbed::{Server, StartOptions, testing};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An authority, and what it signs.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// A server's certificate and its key.
    fn sign(&self, names: &[&str], expired: bool) -> [String; 2] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "server of a test");
        if expired {
            (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        [params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem()]
    }
}

/// A file in a home directory, with its contents.
fn put(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// Restarts the server with each certificate and compares what both programs decide.
fn compare(
    server: &Server,
    trusted: &Authority,
    other: &Authority,
    cases: &[String],
    mut decide: impl FnMut(&str) -> [(bool, String); 2],
) {
    let here = ["localhost", "127.0.0.1"];
    let [certificate, key] =
        ["server.pem", "server-key.pem"].map(|name| server.ca().unwrap().with_file_name(name));
    let mut refused = 0;
    for (kind, [text, private]) in [
        ("right", trusted.sign(&here, false)),
        ("for another name", trusted.sign(&["elsewhere.example"], false)),
        ("by another authority", other.sign(&here, false)),
        ("expired", trusted.sign(&here, true)),
    ] {
        // The owner stays.
        std::fs::write(&certificate, text).unwrap();
        std::fs::write(&key, private).unwrap();
        server.restart().unwrap();
        for case in cases {
            let [theirs, ours] = decide(case);
            assert_eq!(
                theirs.0, ours.0,
                "certificate {kind}, {case}: the engine's client: {}; Kurabe: {}",
                theirs.1, ours.1
            );
            refused += usize::from(!ours.0);
        }
    }
    // Each of three wrong certificates is refused somewhere, and not everything is.
    assert!(refused >= 3 && refused < 4 * cases.len(), "{refused}");
}

/// What a command decides, and what it prints.
fn decision(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn postgres_decides_as_psql() {
    let Some(server) = testing::server_with("postgres", StartOptions::with_tls) else { return };
    if Command::new("psql").arg("--version").output().is_err() {
        super::common::skip("there is no program psql");
        return;
    }
    let (trusted, other) = (Authority::new("trusted"), Authority::new("other"));
    let [bare, usual] = [Place::new(), Place::new()];
    let root = put(bare.home(), "root.pem", &trusted.certificate);
    put(usual.home(), ".postgresql/root.crt", &trusted.certificate);
    let modes = ["disable", "require", "verify-ca", "verify-full"];
    // Without an authority, with the one in its usual place, and with a named one.
    let cases: Vec<String> =
        modes.iter().flat_map(|mode| ["bare", "usual", "named"].map(|how| format!("{mode} {how}"))).collect();
    compare(&server, &trusted, &other, &cases, |case| {
        let (mode, how) = case.split_once(' ').unwrap();
        let place = if how == "usual" { &usual } else { &bare };
        let named = if how == "named" { root.to_str().unwrap() } else { "" };
        let mut psql = Command::new("psql");
        place.configure(&mut psql);
        let given = if named.is_empty() { String::new() } else { format!(" sslrootcert={named}") };
        psql.args(["--no-psqlrc", "--command", "SELECT 1"]).arg(format!(
            "host=127.0.0.1 port={} user=kurabe dbname=kurabe sslmode={mode}{given}",
            server.port()
        ));
        let given = given.replacen(' ', "&", 1);
        let url = format!("postgres://kurabe@127.0.0.1:{}/kurabe?sslmode={mode}{given}", server.port());
        // The variables mean the same.
        let mut by_variable =
            place.command(&["doctor", &format!("postgres://kurabe@127.0.0.1:{}/kurabe", server.port())]);
        by_variable.env("PGSSLMODE", mode);
        if !named.is_empty() {
            by_variable.env("PGSSLROOTCERT", named);
        }
        let ours = decision(&mut place.command(&["doctor", &url]));
        assert_eq!(decision(&mut by_variable).0, ours.0, "{case}: {}", ours.1);
        [decision(&mut psql), ours]
    });
}

/// MySQL's own client, which comes with its server: MariaDB's has other options.
fn mysql_client(server: &Server) -> Option<Command> {
    let folder = server.program().parent()?.parent()?;
    let program = folder.join("bin/mysql");
    // A server in the cache has its own loader and libraries.
    let root = folder.parent()?;
    let loader = root.join("lib64/ld-linux-x86-64.so.2");
    if !program.is_file() {
        super::common::skip("there is no client program of MySQL");
        return None;
    }
    if root == Path::new("/") || !loader.is_file() {
        return Some(Command::new(program));
    }
    let mut command = Command::new(loader);
    command.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu")).arg(program);
    Some(command)
}

/// Compares a client of MySQL or MariaDB with the program, for these lines of an option file.
fn compare_by_file(server: &Server, lines: &[&str], client: impl Fn() -> Command) {
    let (trusted, other) = (Authority::new("trusted"), Authority::new("other"));
    let place = Place::new();
    let root = put(place.home(), "root.pem", &trusted.certificate).display().to_string();
    let cases: Vec<String> = lines.iter().map(|lines| lines.replace("ROOT", &root)).collect();
    compare(server, &trusted, &other, &cases, |case| {
        let file = put(place.home(), ".my.cnf", &format!("[client]\n{case}\n"));
        let mut client = client();
        client.arg(format!("--defaults-file={}", file.display())).args([
            "--protocol=tcp",
            "--host=127.0.0.1",
            &format!("--port={}", server.port()),
            "--user=root",
            "--execute=SELECT 1",
            "kurabe",
        ]);
        [decision(&mut client), decision(&mut place.command(&["doctor", server.url()]))]
    });
}

#[test]
fn mariadb_decides_as_its_client() {
    let Some(server) = testing::server_with("mariadb", StartOptions::with_tls) else { return };
    if Command::new("mariadb").arg("--version").output().is_err() {
        super::common::skip("there is no program mariadb");
        return;
    }
    let lines = [
        "skip-ssl",
        "ssl",
        "ssl=0",
        "ssl-ca=ROOT",
        "ssl-ca=ROOT\nssl-verify-server-cert",
        "ssl-ca=ROOT\nssl-verify-server-cert=0",
        "ssl-ca=ROOT\nskip-ssl",
        "ssl-ca=/nonexistent/ca.pem",
    ];
    compare_by_file(&server, &lines, || Command::new("mariadb"));
}

#[test]
fn mysql_decides_as_its_client() {
    let Some(server) = testing::server_with("mysql", StartOptions::with_tls) else { return };
    if mysql_client(&server).is_none() {
        return;
    }
    let lines = [
        "ssl-mode=DISABLED",
        "ssl-mode=REQUIRED",
        "ssl-mode=VERIFY_CA",
        "ssl-mode=VERIFY_IDENTITY",
        "ssl-ca=ROOT",
        "ssl-ca=ROOT\nssl-mode=REQUIRED",
        "ssl-ca=ROOT\nssl-mode=VERIFY_CA",
        "ssl-ca=ROOT\nssl-mode=VERIFY_IDENTITY",
        "ssl-ca=ROOT\nssl-mode=DISABLED",
        "ssl-ca=/nonexistent/ca.pem",
    ];
    compare_by_file(&server, &lines, || mysql_client(&server).unwrap());
}
