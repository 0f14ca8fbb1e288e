//! CouchDB: Apache CouchDB if it is installed, otherwise PouchDB Server, which implements its HTTP API on LevelDB.
//! `cargo xtask setup` installs the latter into the cache.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::password::{Password, base64};
use crate::spec::Spec;
use crate::{programs, wire};

pub(crate) static COUCHDB: Engine = Engine {
    reserved: &[
        "admins.kurabe",
        "chttpd.bind_address",
        "chttpd.port",
        "couchdb.database_dir",
        "couchdb.uri_file",
        "couchdb.view_index_dir",
        "httpd.bind_address",
        "httpd.port",
        "log.file",
        "pouchdb_server.no-stdout-logs",
        "pouchdb_server.proxy",
        "pouchdb_server.level_prefix",
        "ssl.enable",
    ],
    check,
    has_users: |_, _| true,
    prepare,
    ..Engine::new(
        "couchdb",
        "install it (https://couchdb.apache.org), so that its program is on the PATH",
        find,
        command,
        ping,
        url,
    )
};

/// The folder of the substitute in the cache; `cargo xtask setup` uses the same name.
const SUBSTITUTE: &str = "servers/pouchdb-server-4.2.0/node_modules/pouchdb-server";
/// The server administrator, as in the other engines' databases.
const ADMIN: &str = "kurabe";

/// The file of the guard before the substitute, which asks for the password.
const GUARD: &str = "guard.js";

fn is_substitute(program: &Path) -> bool {
    program.ends_with("bin/pouchdb-server")
}

fn couchdb() -> Option<PathBuf> {
    let mut folders = programs::folders();
    if std::env::var_os("KURABE_SERVER_PATH").is_none() {
        // The location of Apache's own packages.
        folders.push(PathBuf::from("/opt/couchdb/bin"));
    }
    // Its files are found relative to the resolved path of the program.
    programs::find("couchdb", &folders)?.canonicalize().ok()
}

/// The version in an Erlang release file: `VERSION-OF-ERLANG VERSION`.
fn release(program: &Path) -> Option<String> {
    let text = fs::read_to_string(program.parent()?.parent()?.join("releases/start_erl.data")).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}

fn substitute() -> Result<Installed, String> {
    let folder = programs::cache().ok_or("there is no cache folder for its substitute")?.join(SUBSTITUTE);
    let program = folder.join("bin/pouchdb-server");
    let package = fs::read(folder.join("package.json")).ok();
    let package: Option<Value> = package.and_then(|text| serde_json::from_slice(&text).ok());
    let version = package.as_ref().and_then(|package| package["version"].as_str());
    let version =
        version.filter(|_| program.exists()).ok_or("no PouchDB Server in the cache as a substitute")?;
    node().ok_or("no program `node`, which runs PouchDB Server")?;
    Ok(Installed { program, version: version.to_owned() })
}

fn node() -> Option<PathBuf> {
    programs::any("node")
}

/// Splits a setting `section.name`.
fn split(key: &str) -> Option<(&str, &str)> {
    key.split_once('.').filter(|(section, name)| !section.is_empty() && !name.is_empty())
}

/// PouchDB Server's settings in JSON: sections of values, as in CouchDB.
fn substitute_settings(instance: &Instance) -> String {
    let mut settings: Map<String, Value> = Map::new();
    let given = instance.spec.settings.iter().filter_map(|(key, value)| Some((split(key)?, value)));
    for ((section, name), value) in given {
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        settings.entry(section).or_insert_with(|| json!({}))[name] = value;
    }
    let log = instance.dir.join("requests.log");
    let ours = [
        ("log", "file", json!(log.to_string_lossy())),
        ("couchdb", "database_dir", json!(instance.data().to_string_lossy())),
        ("pouchdb_server", "no-stdout-logs", json!(true)),
    ];
    for (section, name, value) in ours {
        settings.entry(section).or_insert_with(|| json!({}))[name] = value;
    }
    // By default it logs each request.
    let level = &mut settings.entry("log").or_insert_with(|| json!({}))["level"];
    if level.is_null() {
        *level = json!("error");
    }
    Value::Object(settings).to_string()
}

/// CouchDB's `local.ini`. The user's lines come last, so that they take precedence.
fn settings(instance: &Instance) -> String {
    let (data, password) = (instance.data(), instance.secret());
    let mut text = format!(
        "[couchdb]\nsingle_node = true\ndatabase_dir = {0}\nview_index_dir = {0}\nuri_file = {1}\n\
         [chttpd]\nbind_address = 127.0.0.1\nport = {2}\n[log]\nlevel = error\n[admins]\n{ADMIN} = {password}\n",
        data.display(),
        instance.dir.join("uri").display(),
        instance.port,
    );
    for (key, value) in &instance.spec.settings {
        if let Some((section, name)) = split(key) {
            let _ = write!(text, "[{section}]\n{name} = {value}\n");
        }
    }
    text
}

/// Arguments of the Erlang VM: without a node name it does not listen for other nodes or start helper programs.
const VM_ARGS: &str =
    "-kernel error_logger silent\n-sasl sasl_error_logger false\n+K true\n+A 16\n+Bd -noinput\n";

fn find() -> Result<Installed, String> {
    if let Some(program) = couchdb() {
        let version = release(&program).unwrap_or_else(|| "0 (unknown)".to_owned());
        return Ok(Installed { program, version });
    }
    substitute().map_err(|why| format!("no program `couchdb`, and {why}"))
}

fn check(spec: &Spec) -> Result<(), String> {
    if spec.tls || spec.socket_only {
        return Err("a throwaway CouchDB supports neither TLS nor a Unix socket".to_owned());
    }
    match spec.settings.iter().find(|(key, _)| split(key).is_none()) {
        Some((key, _)) => Err(format!("`{key}` has no section; write section.{key}=value")),
        None => Ok(()),
    }
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    if is_substitute(&instance.installed.program) {
        instance.write_secret("config.json", &substitute_settings(instance))?;
        instance.write_secret(GUARD, include_str!("guard.js"))?;
        let login = format!("Basic {}", base64(format!("{ADMIN}:{}", instance.secret()).as_bytes()));
        instance.write_secret("login", &Password::new(login).sha256())?;
    } else {
        instance.write_secret("vm.args", VM_ARGS)?;
    }
    Ok(Vec::new())
}

fn command(instance: &Instance, first: bool) -> Launch {
    let program = &instance.installed.program;
    if is_substitute(program) {
        return Launch::new(node().unwrap_or_else(|| PathBuf::from("node")))
            .arg("--require")
            .arg(instance.dir.join(GUARD))
            .arg(program)
            .arg("--host=127.0.0.1")
            .arg(format!("--port={}", instance.port))
            .path("config", &instance.dir.join("config.json"));
    }
    // The port is not known earlier. Before a restart the server has replaced the password by a hash in the file.
    // If the file cannot be written, the server does not start and reports that.
    if first {
        let _ = instance.write_secret("local.ini", &settings(instance));
    }
    let defaults = program.parent().and_then(Path::parent).map(|home| home.join("etc/default.ini"));
    Launch::new("/usr/bin/env")
        .variable("COUCHDB_ARGS_FILE", &instance.dir.join("vm.args"))
        .arg(program)
        .arg("-couch_ini")
        .arg(defaults.unwrap_or_default())
        .arg(instance.dir.join("local.ini"))
}

/// `/_session` is public, and available once all parts of the server are up.
fn ping(instance: &Instance, _pid: u32) -> Result<(), String> {
    let answer = wire::http(instance.port, "/_session")?;
    if answer.contains("\"userCtx\"") {
        Ok(())
    } else {
        Err("the server on this port is not CouchDB".to_owned())
    }
}

fn url(instance: &Instance) -> String {
    format!("couchdb://{}@127.0.0.1:{}", instance.login(ADMIN), instance.port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StartOptions;

    fn instance(program: &str, password: Option<&str>) -> Instance {
        let mut options =
            StartOptions::new("supervisor").set("couchdb.max_document_size", 1_000).set("cluster.q", "2");
        options.password = password.map(str::to_owned);
        Instance {
            spec: options.spec("couchdb"),
            installed: Installed { program: program.into(), version: "1".to_owned() },
            dir: "/tmp/x".into(),
            os_user: None,
            port: 4711,
            tls: None,
            password: Some(Password::new(password.unwrap_or("random"))),
        }
    }

    #[test]
    fn substitute_settings_are_json() {
        let instance = instance("/c/node_modules/pouchdb-server/bin/pouchdb-server", Some("pass\"word"));
        let settings: Value = serde_json::from_str(&substitute_settings(&instance)).unwrap();
        assert_eq!(settings["couchdb"]["max_document_size"], 1_000);
        assert_eq!(settings["couchdb"]["database_dir"], "/tmp/x/data");
        assert!(settings["admins"].is_null());
        assert_eq!(settings["log"]["level"], "error");
        assert_eq!(url(&instance), "couchdb://kurabe@127.0.0.1:4711");
    }

    #[test]
    fn apache_couchdb_has_an_administrator_and_listens_on_the_loopback() {
        let instance = instance("/opt/couchdb/bin/couchdb", None);
        let text = settings(&instance);
        assert!(text.contains("[chttpd]\nbind_address = 127.0.0.1\nport = 4711\n"), "{text}");
        assert!(text.ends_with("[couchdb]\nmax_document_size = 1000\n[cluster]\nq = 2\n"), "{text}");
        assert_eq!(url(&instance), "couchdb://kurabe:random@127.0.0.1:4711");
    }

    #[test]
    fn unknown_setting_or_section_is_rejected() {
        for options in [
            StartOptions::new("supervisor").with_tls(),
            StartOptions::new("supervisor").on_socket_only(),
            StartOptions::new("supervisor").set("max_document_size", 1),
        ] {
            assert!(check(&options.spec("couchdb")).is_err());
        }
    }
}
