//! Application stacks: small applications in several languages that answer `docs/app.openapi.yaml` before a database.
//! They are started and supervised as servers of databases are.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::password::base64;
use crate::spec::{Application, Database, Spec};
use crate::wire;

/// The setting that names the variant.
pub(crate) const VARIANT: &str = "variant";
/// The setting with the number of requests that are processed at once.
pub(crate) const WORKERS: &str = "workers";
/// The setting with the number of requests after which a process of PHP ends and another one takes its place.
pub(crate) const REQUESTS: &str = "requests";
/// The stack of which that is a setting.
pub(crate) const PHP: &str = "php";
/// The default of [`WORKERS`], as for `kurabe up app`.
const WORKERS_BY_DEFAULT: u64 = 16;
/// The maximum of [`WORKERS`]. PHP makes keys of the last ten bits of a process's number.
const MAX_WORKERS: u64 = 1_000;

/// The databases of drivers for MySQL.
pub(crate) const MYSQL: &[&str] = &["mysql", "mariadb"];
/// The databases of stacks that use SQL.
pub(crate) const SQL: &[&str] = &["mysql", "mariadb", "postgres"];
/// All experiments that stacks serve.
pub(crate) const ALL: &[&str] = &["kv", "connect", WEBAPP];
/// The databases of drivers for PostgreSQL.
pub(crate) const POSTGRES: &[&str] = &["postgres"];

pub(crate) struct Stack {
    /// Its program, as a server.
    pub engine: Engine,
    /// Its variants; the first one that can use a database is the default for it.
    pub variants: &'static [Variant],
}

/// A variant of a stack: one way to use a database.
#[derive(Debug)]
pub struct Variant {
    /// The name in `stack:php/NAME`.
    pub name: &'static str,
    /// What is special in it.
    pub about: &'static str,
    /// The schemes of the databases that it can use.
    pub databases: &'static [&'static str],
    /// The experiments that it serves.
    pub experiments: &'static [&'static str],
    /// How it holds its connections to the database, as in `connection` of the contract; `None`: in a pool of as many
    /// as there are workers.
    pub connection: Option<&'static str>,
}

impl Variant {
    /// A variant with a new connection for each request.
    pub(crate) const fn per_request(
        name: &'static str,
        about: &'static str,
        databases: &'static [&'static str],
    ) -> Self {
        Self { name, about, databases, experiments: ALL, connection: Some("per-request") }
    }

    /// A variant in which each worker keeps its connection.
    pub(crate) const fn kept(
        name: &'static str,
        about: &'static str,
        databases: &'static [&'static str],
    ) -> Self {
        Self { name, about, databases, experiments: ALL, connection: Some("kept") }
    }

    /// A variant with a pool of as many connections as workers.
    pub(crate) const fn pooled(
        name: &'static str,
        about: &'static str,
        databases: &'static [&'static str],
    ) -> Self {
        Self { name, about, databases, experiments: ALL, connection: None }
    }

    /// The same, which serves `kv` only: its database has no SQL.
    pub(crate) const fn of_kv(self) -> Self {
        Self { experiments: &["kv"], ..self }
    }
}

/// The engine of a stack: an HTTP server, whose page `/health` asks the database. `check` is its [`Stack::check`].
pub(crate) const fn engine(
    name: &'static str,
    find: fn() -> Result<Installed, String>,
    command: fn(&Instance, first: bool) -> Launch,
    check: fn(&Spec) -> Result<(), String>,
) -> Engine {
    let how = "install it with the libraries that docs/how-to/stacks.md names";
    Engine { check, has_users: |_, _| true, ..Engine::new(name, how, find, command, ping, url) }
}

/// The user that an application knows.
const USER: &str = "kurabe";

fn url(instance: &Instance) -> String {
    format!("http://{}@127.0.0.1:{}", instance.login(USER), instance.port)
}

/// The value of the header `Authorization` without which an application answers nothing.
pub(crate) fn authorization(instance: &Instance) -> String {
    format!("Basic {}", base64(format!("{USER}:{}", instance.secret()).as_bytes()))
}

fn ping(instance: &Instance, _pid: u32) -> Result<(), String> {
    let header = format!("Authorization: {}\r\n", authorization(instance));
    wire::http_request(instance.port, "GET", "/health", &header).map(drop)
}

/// The number of workers of an instance.
pub(crate) fn workers(instance: &Instance) -> u64 {
    setting(&instance.spec.settings, WORKERS).and_then(|text| text.parse().ok()).unwrap_or(WORKERS_BY_DEFAULT)
}

/// The number of requests that a process of an instance serves; 0: all.
pub(crate) fn requests(instance: &Instance) -> u64 {
    setting(&instance.spec.settings, REQUESTS).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn setting<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

impl Stack {
    /// The variant of an instance.
    pub fn variant(&self, spec: &Spec) -> Result<&'static Variant, String> {
        let name = setting(&spec.settings, VARIANT).unwrap_or_default();
        self.variants.iter().find(|variant| variant.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.variants.iter().map(|variant| variant.name).collect();
            format!("it has no variant `{name}`; there are {}", known.join(", "))
        })
    }

    /// Rejects settings that no stack has, and variants that cannot use the database.
    pub fn check(&self, spec: &Spec) -> Result<(), String> {
        let variant = self.variant(spec)?;
        let application = spec.application.as_ref().ok_or("it was started without a database")?;
        if !variant.databases.contains(&application.database.kind.as_str()) {
            return Err(format!(
                "variant {} cannot use {}, only {}",
                variant.name,
                application.database.kind,
                variant.databases.join(", ")
            ));
        }
        for (key, value) in &spec.settings {
            match key.as_str() {
                VARIANT => {}
                WORKERS if value.parse().is_ok_and(|n: u64| (1..=MAX_WORKERS).contains(&n)) => {}
                WORKERS => return Err(format!("workers={value} is out of range, from 1 to {MAX_WORKERS}")),
                REQUESTS if self.engine.name == PHP => {
                    value.parse::<u32>().map_err(|_| format!("requests={value} is not a number"))?;
                }
                _ => return Err(format!("it has no setting `{key}`; there is {WORKERS}")),
            }
        }
        if spec.tls || spec.socket_only || spec.password.is_some() {
            return Err("a stack supports neither TLS, nor a Unix socket, nor a chosen password".to_owned());
        }
        Ok(())
    }

    /// The application's configuration: what [`Application`] says, what the application says of each experiment (member
    /// `about`), the number of workers, and `more`. `program` is the application's name with its version, `sockets` are
    /// those of processes behind it.
    pub fn configuration(
        &self,
        instance: &Instance,
        program: &str,
        sockets: &[PathBuf],
        more: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Map<String, Value>, TestbedError> {
        let variant = self.variant(&instance.spec).map_err(|what| self.bad(what))?;
        let application = self.application(instance)?;
        let workers = workers(instance);
        let connection = variant.connection.map_or_else(|| format!("pool of {workers}"), str::to_owned);
        let Database { host, port, .. } = &application.database;
        let backends: Vec<Value> = sockets.iter().map(|socket| json!({ "socket": socket })).collect();
        let common = [
            ("engine", json!(application.engine)),
            ("version", json!(application.version)),
            ("durability", json!(application.durability)),
            ("application", json!(program)),
            ("variant", json!(variant.name)),
            ("connection", json!(connection)),
            ("workers", json!(workers)),
            ("database", json!({ "host": host, "port": port })),
            ("backends", json!(backends)),
        ];
        let about = application.experiments.iter().map(|(experiment, facts)| {
            let mut about = facts.as_object().cloned().unwrap_or_default();
            about.extend(common.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            if experiment == WEBAPP {
                about.insert("inputs".to_owned(), "client".into());
            }
            (experiment.clone(), Value::Object(about))
        });
        let about: Map<String, Value> = about.collect();
        let all = serde_json::to_value(application);
        let failed = TestbedError::io("writing the application's configuration");
        let Value::Object(mut all) = all.map_err(failed)? else {
            return Err(self.bad("its configuration is no object".to_owned()));
        };
        all.insert("about".to_owned(), Value::Object(about));
        all.insert("authorization".to_owned(), authorization(instance).into());
        all.insert("workers".to_owned(), workers.into());
        all.insert("connection".to_owned(), connection.into());
        all.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(all)
    }

    /// Writes the application's files, and its [configuration](Self::configuration) as `config.json`.
    pub fn write(
        &self,
        instance: &Instance,
        program: &str,
        more: impl IntoIterator<Item = (&'static str, Value)>,
        files: &[(&str, &str)],
    ) -> Result<(), TestbedError> {
        let all = Value::Object(self.configuration(instance, program, &[], more)?).to_string();
        for (name, text) in files.iter().chain(&[("config.json", &*all)]) {
            instance.write_secret(name, text)?;
        }
        Ok(())
    }

    /// What the instance was started for.
    pub fn application<'a>(&self, instance: &'a Instance) -> Result<&'a Application, TestbedError> {
        instance
            .spec
            .application
            .as_ref()
            .ok_or_else(|| self.bad("it was started without a database".to_owned()))
    }

    /// The error of an option.
    pub fn bad(&self, what: String) -> TestbedError {
        TestbedError::BadOption { engine: self.engine.name.to_owned(), what }
    }

    /// The error of a part that is not installed.
    pub fn missing(&self, missing: String) -> TestbedError {
        let (engine, how) = (self.engine.name.to_owned(), self.engine.how.to_owned());
        TestbedError::NotInstalled { engine, missing, how }
    }
}

/// The two first numbers of a version: of `8.2`, `8.2.29` or `17-ea`.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(['.', '-', '+']).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

/// An error for display if a version is too old, or unknown.
pub(crate) fn at_least(min: (u32, u32), product: &str, found: &str) -> Result<(), String> {
    match version(found) {
        Some(version) if version >= min => Ok(()),
        _ => Err(format!("{product} {found} is older than {}.{}", min.0, min.1)),
    }
}

/// The experiment whose inputs clients choose.
const WEBAPP: &str = "webapp";

/// The folder in the cache in which `cargo xtask setup --stacks` installs what the distribution lacks.
pub(crate) fn cache(stack: &str) -> Option<PathBuf> {
    Some(crate::programs::cache()?.join("stacks").join(stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_has_two_numbers() {
        assert_eq!(version("8.2.29"), Some((8, 2)));
        assert_eq!(version("8.2"), Some((8, 2)));
        assert_eq!((version(""), version("17-ea")), (None, Some((17, 0))));
        assert!(version("8.10") > version("8.9"));
        assert!(at_least((8, 2), "x", "8.2.1").is_ok() && at_least((8, 2), "x", "8.1.30").is_err());
    }
}
