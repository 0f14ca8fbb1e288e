//! Java: Jetty, with JDBC and `HikariCP`. The application is in `stacks/java`; its libraries are in the cache.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::programs;
use crate::spec::Database;
use crate::stack::{self, MYSQL, SQL, Stack, Variant};

const APP: &str = include_str!("../stacks/java/App.java");
/// `DIGEST  NAME` a line, as `sha256sum` writes them: the libraries that set-up installs.
const LIBRARIES: &str = include_str!("../stacks/java/checksums.sha256");

/// The lowest version of Java.
const MIN: (u32, u32) = (17, 0);

/// On loopback there is nothing to encrypt. Without TLS, MySQL's server is asked for its key.
const PLAIN: &str = "sslMode=DISABLED&allowPublicKeyRetrieval=true";
/// Properties of Connector/J with which it sends fewer statements while it connects.
const FEWER_STATEMENTS: &str = "&cacheServerConfiguration=true&useLocalSessionState=true&characterSetResults=UTF-8&jdbcCompliantTruncation=false";

pub(crate) static JAVA: Stack = Stack {
    engine: Engine { prepare, ..stack::engine("java", find, command, |spec| JAVA.check(spec)) },
    variants: &[
        Variant::per_request("jdbc", "JDBC, a new connection for each request", SQL),
        Variant::per_request(
            "jdbc-tuned",
            "the same, with four properties of Connector/J that save statements while it connects",
            MYSQL,
        ),
        Variant::pooled("hikari", "JDBC with HikariCP, a connection for each worker", SQL),
    ],
};

fn find() -> Result<Installed, String> {
    let program = programs::required("java")?;
    // The application is compiled when it starts.
    let home = program.canonicalize().ok().and_then(|path| path.parent().map(PathBuf::from));
    if !home.is_some_and(|home| programs::is_program(&home.join("javac"))) {
        return Err("no program `javac` beside `java`: a JDK is needed".to_owned());
    }
    // `openjdk 17.0.15 2025-04-15`
    let found = Installed::identify(Command::new(&program).arg("--version"), program, "Java", |line| {
        line.split_whitespace().nth(1).map(str::to_owned)
    })?;
    stack::at_least(MIN, "Java", &found.version)?;
    let folder = stack::cache("java").ok_or("there is no cache folder for its libraries")?;
    match libraries().find(|name| !folder.join(name).is_file()) {
        None => Ok(found),
        Some(name) => Err(format!("no library {name} in {}", folder.display())),
    }
}

fn libraries() -> impl Iterator<Item = &'static str> {
    LIBRARIES.lines().filter_map(|line| line.split_whitespace().nth(1))
}

/// The JDBC URL of a database for a variant.
fn jdbc(database: &Database, variant: &str) -> String {
    let Database { kind, host, port, name, .. } = database;
    if kind == "postgres" {
        return format!("jdbc:postgresql://{host}:{port}/{name}");
    }
    let more = if variant.ends_with("tuned") { FEWER_STATEMENTS } else { "" };
    format!("jdbc:mysql://{host}:{port}/{name}?{PLAIN}{more}")
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let program = format!("Java {}, Jetty", instance.installed.version);
    let all = JAVA.configuration(instance, &program, &[], [])?;
    let application = JAVA.application(instance)?;
    let variant = JAVA.variant(&instance.spec).map_err(|what| JAVA.bad(what))?.name;
    let mut text = String::new();
    let pool = if variant == "hikari" { "hikari" } else { "none" };
    for (name, value) in [
        ("jdbc.url", jdbc(&application.database, variant)),
        ("jdbc.user", application.database.user.clone()),
        ("jdbc.password", application.database.password.clone()),
        ("pool", pool.to_owned()),
        ("workers", stack::workers(instance).to_string()),
        ("prefix", application.prefix.clone()),
        ("authorization", stack::authorization(instance)),
        ("engine", application.engine.clone()),
    ] {
        property(&mut text, name, &value);
    }
    for (experiment, facts) in &application.experiments {
        for name in ["seed", "records"] {
            property(&mut text, &format!("{experiment}.{name}"), &facts[name].to_string());
        }
        property(&mut text, &format!("{experiment}.about"), &all["about"][experiment].to_string());
    }
    instance.write_secret("application.properties", &text)?;
    instance.write_secret("App.java", APP)?;
    Ok(Vec::new())
}

/// Adds a line in the format of `java.util.Properties`.
fn property(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, "{name}=");
    for (at, character) in value.chars().enumerate() {
        let _ = match character {
            '\\' => write!(text, "\\\\"),
            ' ' if at == 0 => write!(text, "\\ "),
            ' '..='~' => write!(text, "{character}"),
            other => {
                other.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(text, "\\u{unit:04x}"))
            }
        };
    }
    text.push('\n');
}

fn command(instance: &Instance, _first: bool) -> Launch {
    let folder = stack::cache("java").unwrap_or_default();
    Launch::new(&instance.installed.program)
        // Otherwise it writes a file outside its folder.
        .args(["-XX:-UsePerfData", "-Xmx512m", "-cp"])
        .arg(folder.join("*"))
        .arg(instance.dir.join("App.java"))
        .arg(instance.dir.join("application.properties"))
        .arg(instance.port.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_value_is_escaped() {
        let mut text = String::new();
        property(&mut text, "jdbc.password", " a\\b=c:é😀\n");
        assert_eq!(text, "jdbc.password=\\ a\\\\b=c:\\u00e9\\ud83d\\ude00\\u000a\n");
    }

    #[test]
    fn every_library_has_a_digest() {
        assert!(libraries().count() >= 8);
        for line in LIBRARIES.lines() {
            let (digest, name) = line.split_once("  ").unwrap();
            assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
            assert!(name.strip_suffix(".jar").is_some(), "{line}");
        }
    }
}
