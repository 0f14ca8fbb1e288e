//! The decision to connect, or not, by TLS mode and certificate: the same as that of the engine's own client.

use crate::support::Place;
use kurabe_testbed::{Server, StartOptions, testing};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The serial number of the certificate that is revoked.
const REVOKED: u64 = 4_711;

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
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// The list of revoked certificates.
    fn revoked(&self) -> String {
        let number = SerialNumber::from(REVOKED);
        let revoked = RevokedCertParams {
            serial_number: number.clone(),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: number,
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// A server's certificate and its key.
    fn sign(&self, names: &[&str], serial: u64, expired: bool) -> [String; 2] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "server of a test");
        if expired {
            (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        }
        params.serial_number = Some(SerialNumber::from(serial));
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

/// Gives the server each certificate and compares what both programs decide. `reload` has the server read its files.
fn compare(
    server: &Server,
    [trusted, other]: [&Authority; 2],
    cases: &[String],
    reload: impl Fn(),
    mut decide: impl FnMut(&str) -> [(bool, String); 2],
) {
    let here = ["localhost", "127.0.0.1"];
    let files = ["server.pem", "server-key.pem"].map(|name| server.ca().unwrap().with_file_name(name));
    let own = files.clone().map(|file| std::fs::read_to_string(file).unwrap());
    // The owner of the files stays.
    let put = |texts: &[String; 2]| {
        for (file, text) in files.iter().zip(texts) {
            std::fs::write(file, text).unwrap();
        }
        reload();
    };
    let kinds = [
        ("right", trusted.sign(&here, 1, false)),
        ("for another name", trusted.sign(&["elsewhere.example"], 2, false)),
        ("by another authority", other.sign(&here, 3, false)),
        ("expired", trusted.sign(&here, 4, true)),
        ("revoked", trusted.sign(&here, REVOKED, false)),
    ];
    let (mut refused, mut of_right) = (Vec::new(), 0);
    for (kind, files) in &kinds {
        put(files);
        let before = refused.len();
        for case in cases {
            let [theirs, ours] = decide(case);
            assert_eq!(
                theirs.0, ours.0,
                "certificate {kind}, {case}: the engine's client: {}; Kurabe: {}",
                theirs.1, ours.1
            );
            refused.extend((!ours.0).then_some(case));
        }
        // Each wrong certificate is refused somewhere where the right one is not.
        let here = refused.len() - before;
        assert!(*kind == "right" || here > of_right, "{kind}: {refused:?}");
        of_right = if *kind == "right" { here } else { of_right };
    }
    put(&own);
}

/// Executes a statement by an engine's program, and gives the first line that it prints.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
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
    let root = put(bare.home(), "root.pem", &trusted.certificate).display().to_string();
    let list = put(bare.home(), "revoked.pem", &trusted.revoked()).display().to_string();
    put(usual.home(), ".postgresql/root.crt", &trusted.certificate);
    put(usual.home(), ".postgresql/root.crl", &trusted.revoked());
    let modes = ["disable", "require", "verify-ca", "verify-full"];
    // Without an authority, with the files in their usual places, and with named ones.
    let how = ["bare", "usual", "named", "listed"];
    let mut cases: Vec<String> =
        modes.iter().flat_map(|mode| how.map(|how| format!("{mode} {how}"))).collect();
    // It decides before there is a certificate.
    cases.retain(|case| !case.starts_with("disable") || case.ends_with("bare"));
    let admin = |sql: &str| {
        let at = format!(
            "host={} port={} user=postgres dbname=kurabe",
            server.socket().unwrap().parent().unwrap().display(),
            server.port()
        );
        run(Command::new("psql").args(["--no-psqlrc", "--no-align", "--tuples-only", "--command", sql, &at]))
    };
    // The process that starts others reads its certificate in the same step.
    let reload = || {
        let before = admin("SELECT pg_conf_load_time()");
        admin("SELECT pg_reload_conf()");
        let began = Instant::now();
        while admin("SELECT pg_conf_load_time()") == before {
            assert!(began.elapsed() < Duration::from_secs(60), "the server reads its files");
        }
    };
    compare(&server, [&trusted, &other], &cases, reload, |case| {
        let (mode, how) = case.split_once(' ').unwrap();
        let place = if how == "usual" { &usual } else { &bare };
        let named = if matches!(how, "named" | "listed") { root.as_str() } else { "" };
        let listed = if how == "listed" { list.as_str() } else { "" };
        let mut psql = Command::new("psql");
        place.configure(&mut psql);
        let mut given = if named.is_empty() { String::new() } else { format!(" sslrootcert={named}") };
        if !listed.is_empty() {
            given = format!("{given} sslcrl={listed}");
        }
        psql.env("PGPASSWORD", server.password().unwrap());
        psql.args(["--no-psqlrc", "--command", "SELECT 1"]).arg(format!(
            "host=127.0.0.1 port={} user=kurabe dbname=kurabe sslmode={mode}{given}",
            server.port()
        ));
        let given = given.replace(' ', "&");
        let url = format!("{}?sslmode={mode}{given}", server.url());
        // The variables mean the same.
        let mut by_variable = place.command(&["doctor", server.url()]);
        by_variable.env("PGSSLMODE", mode);
        if !named.is_empty() {
            by_variable.env("PGSSLROOTCERT", named);
        }
        if !listed.is_empty() {
            by_variable.env("PGSSLCRL", listed);
        }
        let ours = decision(&mut place.command(&["doctor", &url]));
        // Once is enough where an option and its variable are read alike.
        if mode == "verify-full" {
            assert_eq!(decision(&mut by_variable).0, ours.0, "{case}: {}", ours.1);
        }
        [decision(&mut psql), ours]
    });
}

/// MySQL's own client, which comes with its server: MariaDB's has other options.
pub(crate) fn mysql_client(server: &Server) -> Option<Command> {
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
fn compare_by_file(server: &Server, reload: &str, lines: &[&str], client: impl Fn() -> Command) {
    let (trusted, other) = (Authority::new("trusted"), Authority::new("other"));
    let place = Place::new();
    let root = put(place.home(), "root.pem", &trusted.certificate).display().to_string();
    let list = put(place.home(), "revoked.pem", &trusted.revoked()).display().to_string();
    let lines = lines.iter().map(|lines| lines.replace("ROOT", &root).replace("REVOKED", &list));
    let cases: Vec<String> = lines.collect();
    let socket = server.socket().unwrap().display().to_string();
    let reload = || {
        let mut client = client();
        client.args(["--no-defaults", "--user=root", "--socket", &socket, "--execute", reload]);
        run(client.env("MYSQL_PWD", server.password().unwrap()));
    };
    compare(server, [&trusted, &other], &cases, reload, |case| {
        let file = put(place.home(), ".my.cnf", &format!("[client]\n{case}\n"));
        let mut client = client();
        client.env("MYSQL_PWD", server.password().unwrap());
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
        "ssl-ca=ROOT\nssl-crl=REVOKED",
        "ssl-ca=/nonexistent/ca.pem",
    ];
    compare_by_file(&server, "FLUSH SSL", &lines, || Command::new("mariadb"));
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
        "ssl-ca=ROOT\nssl-crl=REVOKED\nssl-mode=VERIFY_CA",
        "ssl-ca=ROOT\nssl-crl=REVOKED\nssl-mode=REQUIRED",
        "ssl-ca=/nonexistent/ca.pem",
    ];
    compare_by_file(&server, "ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR", &lines, || {
        mysql_client(&server).unwrap()
    });
}
