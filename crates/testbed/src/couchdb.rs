//! CouchDB: Apache CouchDB where it is installed, else PouchDB Server, which speaks its HTTP API on LevelDB and which
//! `cargo xtask setup` puts into the cache.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::TestbedError;
use crate::engine::{Engine, Installed, Launch, Missing, Site};
use crate::options::Spec;
use crate::{programs, wire};

pub(crate) struct CouchDb;

/// The stand-in's folder in the cache; set-up makes it under the same name.
const STAND_IN: &str = "servers/pouchdb-server-4.2.0/node_modules/pouchdb-server";
/// The server administrator, as in the other engines' databases.
const ADMIN: &str = "kurabe";
/// Apache CouchDB does not start without an administrator. Where nobody asked for a password, this one is in the URL.
const NO_SECRET: &str = "kurabe";

/// Which of the two a program is.
fn is_stand_in(program: &Path) -> bool {
    program.ends_with("bin/pouchdb-server")
}

fn couchdb() -> Option<PathBuf> {
    let mut folders = programs::folders();
    if std::env::var_os("KURABE_SERVER_PATH").is_none() {
        // Where Apache's own packages put it.
        folders.push(PathBuf::from("/opt/couchdb/bin"));
    }
    // Its files are found from where the program really lies.
    programs::find("couchdb", &folders)?.canonicalize().ok()
}

/// The version of a release of Erlang's: `VERSION-OF-ERLANG VERSION`.
fn release(program: &Path) -> Option<String> {
    let text = fs::read_to_string(program.parent()?.parent()?.join("releases/start_erl.data")).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}

fn stand_in() -> Result<Installed, String> {
    let Some(folder) = programs::cache().map(|cache| cache.join(STAND_IN)) else {
        return Err("there is no cache for its stand-in".to_owned());
    };
    let program = folder.join("bin/pouchdb-server");
    let package = fs::read(folder.join("package.json")).ok();
    let package: Option<Value> = package.and_then(|text| serde_json::from_slice(&text).ok());
    let version = package.as_ref().and_then(|package| package["version"].as_str());
    let (Some(version), true) = (version, program.exists()) else {
        return Err("no PouchDB Server in the cache, which can stand in for it".to_owned());
    };
    if node().is_none() {
        return Err("no program `node`, which runs PouchDB Server".to_owned());
    }
    Ok(Installed { program, version: version.to_owned() })
}

fn node() -> Option<PathBuf> {
    programs::find("node", &programs::folders())
}

/// A setting is `section.name`, as in the server's own files.
fn split(key: &str) -> Option<(&str, &str)> {
    key.split_once('.').filter(|(section, name)| !section.is_empty() && !name.is_empty())
}

/// PouchDB Server's settings: sections of values, like CouchDB's, in JSON.
fn stand_in_settings(site: &Site) -> String {
    let mut settings: Map<String, Value> = Map::new();
    let given = site.spec.settings.iter().filter_map(|(key, value)| Some((split(key)?, value)));
    for ((section, name), value) in given {
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        settings.entry(section).or_insert_with(|| json!({}))[name] = value;
    }
    let log = site.dir.join("requests.log");
    let ours = [
        ("log", "file", json!(log.to_string_lossy())),
        ("couchdb", "database_dir", json!(site.data().to_string_lossy())),
        ("pouchdb_server", "no-stdout-logs", json!(true)),
    ];
    for (section, name, value) in ours {
        settings.entry(section).or_insert_with(|| json!({}))[name] = value;
    }
    // As shipped it writes a line for each request.
    let level = &mut settings.entry("log").or_insert_with(|| json!({}))["level"];
    if level.is_null() {
        *level = json!("error");
    }
    if let Some(password) = &site.spec.password {
        settings.insert("admins".to_owned(), json!({ ADMIN: password }));
    }
    Value::Object(settings).to_string()
}

/// CouchDB's `local.ini`. Its lines come last, so that they count.
fn settings(site: &Site) -> String {
    let (data, password) = (site.data(), site.spec.password.as_deref().unwrap_or(NO_SECRET));
    let mut text = format!(
        "[couchdb]\nsingle_node = true\ndatabase_dir = {0}\nview_index_dir = {0}\nuri_file = {1}\n\
         [chttpd]\nbind_address = 127.0.0.1\nport = {2}\n[log]\nlevel = error\n[admins]\n{ADMIN} = {password}\n",
        data.display(),
        site.dir.join("uri").display(),
        site.port,
    );
    for (key, value) in &site.spec.settings {
        if let Some((section, name)) = split(key) {
            let _ = write!(text, "[{section}]\n{name} = {value}\n");
        }
    }
    text
}

/// The Erlang machine without a name: it neither listens for other nodes nor starts a program that does.
const VM_ARGS: &str =
    "-kernel error_logger silent\n-sasl sasl_error_logger false\n+K true\n+A 16\n+Bd -noinput\n";

impl Engine for CouchDb {
    fn name(&self) -> &'static str {
        "couchdb"
    }

    fn find(&self) -> Result<Installed, Missing> {
        if let Some(program) = couchdb() {
            let version = release(&program).unwrap_or_else(|| "0 (unknown)".to_owned());
            return Ok(Installed { program, version });
        }
        stand_in().map_err(|why| Missing {
            what: format!("no program `couchdb`, and {why}"),
            how: "install Apache CouchDB, or Node.js with npm (apt-get install nodejs npm) and run `cargo xtask setup`"
                .to_owned(),
        })
    }

    fn refuses_root(&self) -> bool {
        false
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
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
        ]
    }

    fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        let bad = |what: String| Err(TestbedError::BadOption { engine: self.name().to_owned(), what });
        if spec.tls || spec.socket_only {
            return bad("a throwaway CouchDB has a port, and neither TLS nor a Unix socket".to_owned());
        }
        match spec.settings.iter().find(|(key, _)| split(key).is_none()) {
            Some((key, _)) => bad(format!("`{key}` is in no section; write section.{key}=value")),
            None => Ok(()),
        }
    }

    fn prepare(&self, site: &Site) -> Result<Vec<Launch>, TestbedError> {
        let making = TestbedError::io(format!("making {}", site.data().display()));
        fs::create_dir(site.data()).map_err(making)?;
        if is_stand_in(&site.installed.program) {
            site.write_secret("config.json", &stand_in_settings(site))?;
        } else {
            site.write_secret("vm.args", VM_ARGS)?;
        }
        Ok(Vec::new())
    }

    /// It is made by the server itself.
    fn is_like_any_other(&self, _site: &Site) -> bool {
        false
    }

    fn command(&self, site: &Site, first: bool) -> Launch {
        let program = &site.installed.program;
        if is_stand_in(program) {
            return Launch::new(node().unwrap_or_else(|| PathBuf::from("node")))
                .arg(program)
                .arg("--host=127.0.0.1")
                .arg(format!("--port={}", site.port))
                .path("config", &site.dir.join("config.json"));
        }
        // The port is not known before. A second start finds the file as the server has left it, with the password
        // hashed; should it not be written now, the server does not start and says so.
        if first {
            let _ = site.write_secret("local.ini", &settings(site));
        }
        let arguments = site.dir.join("vm.args");
        let mut environment = std::ffi::OsString::from("COUCHDB_ARGS_FILE=");
        environment.push(arguments);
        let defaults = program.parent().and_then(Path::parent).map(|home| home.join("etc/default.ini"));
        Launch::new("/usr/bin/env")
            .arg(environment)
            .arg(program)
            .arg("-couch_ini")
            .arg(defaults.unwrap_or_default())
            .arg(site.dir.join("local.ini"))
    }

    /// Who is logged in is told to everybody, once all parts of the server are up.
    fn ping(&self, site: &Site, _pid: u32) -> Result<(), String> {
        let answer = wire::http(site.port, "/_session")?;
        if answer.contains("\"userCtx\"") { Ok(()) } else { Err("what answers is no CouchDB".to_owned()) }
    }

    fn socket(&self, _site: &Site) -> Option<PathBuf> {
        None
    }

    fn url(&self, site: &Site) -> String {
        let who = match (&site.spec.password, is_stand_in(&site.installed.program)) {
            (Some(_), _) => format!("{ADMIN}@"),
            // Without an administrator everybody is one.
            (None, true) => ":@".to_owned(),
            (None, false) => format!("{ADMIN}:{NO_SECRET}@"),
        };
        format!("couchdb://{who}127.0.0.1:{}", site.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StartOptions;

    fn site(program: &str, password: Option<&str>) -> Site {
        let mut options =
            StartOptions::new("guard").set("couchdb.max_document_size", 1_000).set("cluster.q", "2");
        options.password = password.map(str::to_owned);
        Site {
            spec: options.spec("couchdb"),
            installed: Installed { program: program.into(), version: "1".to_owned() },
            dir: "/tmp/x".into(),
            account: None,
            port: 4711,
            tls: None,
        }
    }

    #[test]
    fn the_stand_in_has_its_settings_in_json() {
        let site = site("/c/node_modules/pouchdb-server/bin/pouchdb-server", Some("pass\"word"));
        let settings: Value = serde_json::from_str(&stand_in_settings(&site)).unwrap();
        assert_eq!(settings["couchdb"]["max_document_size"], 1_000);
        assert_eq!(settings["couchdb"]["database_dir"], "/tmp/x/data");
        assert_eq!(settings["admins"]["kurabe"], "pass\"word");
        assert_eq!(settings["log"]["level"], "error");
        assert_eq!(CouchDb.url(&site), "couchdb://kurabe@127.0.0.1:4711");
    }

    #[test]
    fn apache_couchdb_has_an_administrator_and_listens_on_the_loopback() {
        let site = site("/opt/couchdb/bin/couchdb", None);
        let text = settings(&site);
        assert!(text.contains("[chttpd]\nbind_address = 127.0.0.1\nport = 4711\n"), "{text}");
        assert!(text.ends_with("[couchdb]\nmax_document_size = 1000\n[cluster]\nq = 2\n"), "{text}");
        assert_eq!(CouchDb.url(&site), "couchdb://kurabe:kurabe@127.0.0.1:4711");
    }

    #[test]
    fn what_it_has_not_and_what_has_no_section_is_refused() {
        for options in [
            StartOptions::new("guard").with_tls(),
            StartOptions::new("guard").on_socket_only(),
            StartOptions::new("guard").set("max_document_size", 1),
        ] {
            assert!(CouchDb.check(&options.spec("couchdb")).is_err());
        }
    }
}
