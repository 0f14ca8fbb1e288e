//! PHP under php-fpm, behind nginx. The application is in `stacks/php`.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::stack::{self, MYSQL, POSTGRES, SQL, Stack, Variant};
use crate::supervisor::together;
use crate::{environment, programs};

/// The application; `@NAME@` stands in files of configuration for what is known when it starts.
const FILES: [(&str, &str); 3] = [
    ("index.php", include_str!("../stacks/php/index.php")),
    ("sql.php", include_str!("../stacks/php/sql.php")),
    ("documents.php", include_str!("../stacks/php/documents.php")),
];
const NGINX: &str = include_str!("../stacks/php/nginx.conf");
const FPM: &str = include_str!("../stacks/php/php-fpm.conf");

/// The lowest version, of `mysqli::execute_query`.
const MIN: (u32, u32) = (8, 2);

pub(crate) static PHP: Stack = Stack {
    engine: Engine {
        // nginx and php-fpm run as one unprivileged user, whose folder holds the socket between them.
        refuses_root: true,
        prepare,
        // Both stop their own processes then.
        stop_signal: Signal::TERM,
        ..stack::engine(stack::PHP, find, command, |spec| PHP.check(spec))
    },
    variants: VARIANTS,
};

/// The variants of PHP, whatever runs it.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant::per_request("mysqli", "mysqli, a new connection for each request", MYSQL),
    Variant::kept("mysqli-persistent", "mysqli with persistent connections (p:)", MYSQL),
    Variant::per_request("pdo", "PDO, a new connection for each request", SQL),
    Variant::kept("pdo-persistent", "PDO with ATTR_PERSISTENT", SQL),
    Variant::per_request("pg", "pg_connect, a new connection for each request", POSTGRES),
    Variant::kept("pg-persistent", "pg_pconnect", POSTGRES),
    Variant::kept("mongodb", "the extension mongodb, which keeps its connections", &["mongodb"]).of_kv(),
    Variant::per_request(
        "memcached",
        "the extension memcached, a new connection for each request",
        &["memcached"],
    )
    .of_kv(),
    Variant::kept("memcached-persistent", "the same with persistent connections", &["memcached"]).of_kv(),
    Variant::per_request("curl", "CouchDB by curl, a new connection for each request", &["couchdb"]).of_kv(),
];

/// `php-fpm`, or `php-fpm8.2` as Debian names it: the newest.
fn fpm() -> Option<PathBuf> {
    let debian = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let version = stack::version(entry.file_name().to_str()?.strip_prefix("php-fpm")?)?;
            Some((version, entry.path())).filter(|(_, path)| programs::is_program(path))
        })
    };
    let newest = programs::folders().into_iter().flat_map(debian).max();
    programs::any("php-fpm").or_else(|| newest.map(|(_, path)| path))
}

/// An error for display if a version is too old.
pub(crate) fn check_version(text: &str) -> Result<(), String> {
    // The name of Apache's module may have no whole version.
    if text.contains('.') { stack::at_least(MIN, "PHP", text) } else { Ok(()) }
}

fn find() -> Result<Installed, String> {
    let fpm = fpm().ok_or("no program `php-fpm`")?;
    programs::required("nginx")?;
    // `PHP 8.2.29 (fpm-fcgi) (built: …)`
    let found = Installed::identify(Command::new(&fpm).arg("-v"), fpm, "PHP", |line| {
        programs::word_after(line, "PHP")
    })?;
    check_version(&found.version)?;
    Ok(found)
}

/// The extension of PHP that a variant uses, by which the application selects its API.
fn extension(variant: &str, kind: &str) -> &'static str {
    match (variant.split('-').next(), kind) {
        (Some("pg"), _) => "pgsql",
        (Some("pdo"), "postgres") => "pdo_pgsql",
        (Some("pdo"), _) => "pdo_mysql",
        (Some("mongodb"), _) => "mongodb",
        (Some("curl"), _) => "curl",
        (Some("memcached"), _) => "memcached",
        _ => "mysqli",
    }
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let Installed { program, version } = &instance.installed;
    let says = format!("PHP {version}, php-fpm and nginx");
    write_application(&PHP, instance, &modules(program), &says, &[instance.run().join("php-fpm.sock")])?;
    Ok(Vec::new())
}

/// Writes the application. `modules` are the extensions that are there; see [`Stack::configuration`] for the others.
pub(crate) fn write_application(
    stack: &Stack,
    instance: &Instance,
    modules: &[String],
    program: &str,
    sockets: &[PathBuf],
) -> Result<(), TestbedError> {
    let variant = stack.variant(&instance.spec).map_err(|what| stack.bad(what))?;
    let extension = extension(variant.name, &stack.application(instance)?.database.kind);
    if !modules.iter().any(|name| name == extension) {
        return Err(stack.missing(format!("PHP has no extension `{extension}`")));
    }
    let all = stack.configuration(instance, program, sockets, [("api", json!(extension))])?;
    let text = serde_json::Value::Object(all).to_string();
    // A nowdoc is literal. JSON has no line breaks, so that its end mark cannot occur within.
    let text = format!("<?php\nreturn json_decode(<<<'JSON'\n{text}\nJSON, true);\n");
    instance.write_secret("config.php", &text)?;
    for (name, text) in FILES {
        instance.write_secret(name, text)?;
    }
    Ok(())
}

/// The extensions that are installed and enabled.
pub(crate) fn modules(php: &Path) -> Vec<String> {
    let output = environment::without_secrets(Command::new(php).arg("-m")).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().map(|line| line.trim().to_ascii_lowercase()).collect()
}

fn command(instance: &Instance, _first: bool) -> Launch {
    let nginx = programs::any("nginx").unwrap_or_else(|| PathBuf::from("nginx"));
    let dir = instance.dir.display().to_string();
    let (port, workers) = (instance.port.to_string(), stack::workers(instance).to_string());
    let requests = stack::requests(instance).to_string();
    let temporary = temporary(&nginx, &dir);
    // The port is not known earlier. If a file cannot be written, its program does not start and reports that.
    for (name, text) in [("nginx.conf", NGINX), ("php-fpm.conf", FPM)] {
        let text = text
            .replace("@TEMPORARY@", &temporary)
            .replace("@DIR@", &dir)
            .replace("@PORT@", &port)
            .replace("@WORKERS@", &workers)
            .replace("@AUTHORIZATION@", &stack::authorization(instance))
            .replace("@REQUESTS@", &requests);
        let _ = instance.write_secret(name, &text);
    }
    let fpm = Launch::new(&instance.installed.program)
        .args(["--nodaemonize", "--force-stderr", "--fpm-config"])
        .arg(instance.dir.join("php-fpm.conf"));
    let nginx =
        Launch::new(nginx).args(["-e", "stderr", "-p", &dir, "-c"]).arg(instance.dir.join("nginx.conf"));
    together([fpm, nginx])
}

/// The temporary folders of modules that this nginx has. Those that are compiled in are root's.
fn temporary(nginx: &Path, dir: &str) -> String {
    let output = environment::without_secrets(Command::new(nginx).arg("-V")).output();
    let built = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    let has = |module: &&str| !built.contains(&format!("--without-http_{module}_module"));
    let line = |module| format!("    {module}_temp_path {dir}/tmp/{module};");
    ["proxy", "uwsgi", "scgi"].into_iter().filter(has).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_that_is_not_whole_is_not_refused() {
        assert!(check_version("8").is_ok() && check_version("8.3").is_ok() && check_version("8.1").is_err());
    }

    #[test]
    fn each_variant_has_an_extension() {
        for variant in PHP.variants {
            for kind in variant.databases {
                let extension = extension(variant.name, kind);
                assert_eq!(extension.contains("pg"), *kind == "postgres", "{} {kind}", variant.name);
            }
        }
    }
}
