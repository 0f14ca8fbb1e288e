//! MongoDB if it is installed, otherwise `FerretDB` with its `SQLite` backend, which implements its protocol.
//! `cargo xtask setup` builds it into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch, Missing};
use crate::options::Spec;
use crate::{programs, wire};

/// The program of the stand-in in the cache.
const STAND_IN: &str = "ferretdb-sqlite";

const BOTH: &str = "certificate-and-key.pem";

pub(crate) struct MongoDb;

/// `db version v8.0.4` or `ferretdb-sqlite v1.24.0`.
fn version(program: &Path, ask: &str, mark: &str) -> Result<Option<String>, String> {
    let line = programs::first_line(Command::new(program).arg(ask))?;
    Ok(programs::word_after(&line, mark).map(|version| version.trim_start_matches('v').to_owned()))
}

fn is_stand_in(instance: &Instance) -> bool {
    instance.installed.program.file_name().is_some_and(|name| name == STAND_IN)
}

impl Engine for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how =
            "install MongoDB, so that `mongod` is on the PATH, or run `cargo xtask setup`, which builds a stand-in \
             of its protocol and needs Go (apt-get install golang-go)"
                .to_owned();
        let mut what = "no program `mongod`".to_owned();
        if let Some(program) = programs::find("mongod", &programs::folders()) {
            match version(&program, "--version", "version") {
                Ok(Some(version)) => return Ok(Installed { program, version }),
                Ok(None) => what = format!("{} is not MongoDB", program.display()),
                Err(why) => what = why,
            }
        }
        let stand_in = programs::cache().map(|cache| cache.join("servers").join(STAND_IN));
        let Some(program) = stand_in.filter(|path| programs::is_program(path)) else {
            return Err(Missing { what: what + ", no stand-in in the cache", how });
        };
        match version(&program, "-version", STAND_IN) {
            Ok(Some(version)) => Ok(Installed { program, version }),
            Ok(None) => Err(Missing { what: format!("{} is not the stand-in", program.display()), how }),
            Err(what) => Err(Missing { what, how }),
        }
    }

    fn refuses_root(&self) -> bool {
        false
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "bind_ip",
            "bind_ip_all",
            "config",
            "configExpand",
            "data",
            "dbpath",
            "filePermissions",
            "fork",
            "keyFile",
            "logpath",
            "nounixsocket",
            "pidfilepath",
            "port",
            "shutdown",
            "socket",
            "unixSocketPrefix",
        ]
    }

    fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        if spec.password.is_some() {
            let what = "a throwaway MongoDB does not support a password".to_owned();
            return Err(TestbedError::BadOption { engine: self.name().to_owned(), what });
        }
        Ok(())
    }

    fn prepare(&self, instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
        let data = instance.data();
        fs::create_dir_all(&data).map_err(TestbedError::io(format!("creating {}", data.display())))?;
        if let Some(tls) = instance.tls.as_ref().filter(|_| !is_stand_in(instance)) {
            let read = |path: &Path| {
                fs::read_to_string(path).map_err(TestbedError::io(format!("reading {}", path.display())))
            };
            // mongod needs certificate and key in one file.
            instance.write_secret(BOTH, &(read(&tls.certificate)? + &read(&tls.key)?))?;
        }
        Ok(Vec::new())
    }

    /// It creates its data at the start, which is faster than a copy.
    fn can_use_template(&self, _instance: &Instance) -> bool {
        false
    }

    fn command(&self, instance: &Instance, _first: bool) -> Launch {
        let launch = Launch::new(&instance.installed.program).arg(format!("--port={}", instance.port));
        let mut launch = if is_stand_in(instance) {
            launch.path("data", &instance.data()).path("socket", &socket(instance))
        } else {
            launch
                .path("dbpath", &instance.data())
                .path("unixSocketPrefix", &instance.dir)
                .arg("--bind_ip=127.0.0.1")
        };
        launch = match (&instance.tls, is_stand_in(instance)) {
            (None, _) => launch,
            (Some(tls), true) => launch.path("tls-cert", &tls.certificate).path("tls-key", &tls.key),
            (Some(_), false) => {
                launch.arg("--tlsMode=requireTLS").path("tlsCertificateKeyFile", &instance.dir.join(BOTH))
            }
        };
        for (key, value) in &instance.spec.settings {
            launch =
                launch.arg(if value.is_empty() { format!("--{key}") } else { format!("--{key}={value}") });
        }
        launch
    }

    fn ping(&self, instance: &Instance, _pid: u32) -> Result<(), String> {
        wire::mongodb(&socket(instance))
    }

    fn socket(&self, instance: &Instance) -> Option<PathBuf> {
        Some(socket(instance))
    }

    fn url(&self, instance: &Instance) -> String {
        format!("mongodb://127.0.0.1:{}/kurabe", instance.port)
    }
}

/// The path of the socket, whose file name mongod determines.
fn socket(instance: &Instance) -> PathBuf {
    instance.dir.join(format!("mongodb-{}.sock", instance.port))
}
