//! Firebird 3, in its mode `Super`: one process for all databases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch, Missing};
use crate::options::Spec;
use crate::{programs, wire};

pub(crate) struct Firebird;

/// The password if none is given: Firebird has no users without a password.
const PASSWORD: &str = "masterkey";

/// The setting of the database that decides whether a commit waits for the storage.
const FORCED_WRITES: &str = "ForcedWrites";

/// Where packages install `security.sql`, which creates the database of users.
const SCRIPT: &str = "/usr/share/firebird/3.0/security.sql";

impl Engine for Firebird {
    fn name(&self) -> &'static str {
        "firebird"
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how = "apt-get install firebird3.0-server, or `cargo xtask setup`".to_owned();
        let folders = programs::folders();
        let Some(program) = programs::find("firebird", &folders) else {
            return Err(Missing { what: "no program `firebird`".to_owned(), how });
        };
        if tool("isql-fb").is_none() || tool("gfix").is_none() || !Path::new(SCRIPT).exists() {
            let what = format!("{} found, but not `isql-fb`, `gfix` and {SCRIPT}", program.display());
            return Err(Missing { what, how });
        }
        // `Firebird TCP/IP server version LI-V3.0.11.33637 Firebird 3.0`
        match programs::first_line(Command::new(&program).arg("-z")) {
            Ok(line) => match line.split_once("-V").and_then(|(_, rest)| rest.split_whitespace().next()) {
                Some(version) if version.starts_with("3.") => {
                    Ok(Installed { program, version: version.to_owned() })
                }
                _ => Err(Missing { what: format!("{} is not Firebird 3", program.display()), how }),
            },
            Err(what) => Err(Missing { what, how }),
        }
    }

    /// Firebird does not require it, but its packages run it as a separate user, and so does the testbed.
    fn refuses_root(&self) -> bool {
        true
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "AuthServer",
            "DatabaseAccess",
            "ExternalFileAccess",
            "IpcName",
            "RemoteAuxPort",
            "RemoteBindAddress",
            "RemoteServiceName",
            "RemoteServicePort",
            "SecurityDatabase",
            "ServerMode",
            "TempDirectories",
            "UdfAccess",
            "UserManager",
        ]
    }

    fn durability(&self, class: &str) -> &'static [(&'static str, &'static str)] {
        match class {
            "os-cache" => &[(FORCED_WRITES, "off")],
            "synced" => &[(FORCED_WRITES, "on")],
            _ => &[],
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        let bad = |what: String| Err(TestbedError::BadOption { engine: self.name().to_owned(), what });
        if spec.tls || spec.socket_only {
            return bad("a throwaway Firebird supports neither TLS nor a Unix socket".to_owned());
        }
        match forced_writes(spec) {
            None | Some("on" | "off") => Ok(()),
            Some(other) => bad(format!("{FORCED_WRITES}={other} is unknown; on or off")),
        }
    }

    fn prepare(&self, instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
        configure(instance)?;
        let data = |name: &str| instance.data().join(name).display().to_string();
        // The tools access the files: no server runs yet. The password is in a script, not in an argument.
        let security = instance.write_secret(
            "security.sql",
            &format!("CREATE DATABASE '{}';\nINPUT '{SCRIPT}';\nCOMMIT;\n", data("security3.fdb")),
        )?;
        let password = instance.spec.password.as_deref().unwrap_or(PASSWORD).replace('\'', "''");
        let create = format!(
            "CREATE DATABASE '{}' DEFAULT CHARACTER SET UTF8;\nCREATE OR ALTER USER SYSDBA PASSWORD '{password}' USING PLUGIN Srp;\nCOMMIT;\n",
            data("kurabe.fdb")
        );
        // Removed once the server has started.
        let create = instance.write_secret("init.sql", &create)?;
        let isql = |input: PathBuf| {
            within(instance, "isql-fb").arg("-bail").arg("-q").arg("-user").arg("SYSDBA").arg("-i").arg(input)
        };
        let folder = Launch::new("/bin/mkdir").arg(instance.data());
        let mut steps = vec![folder, isql(security), isql(create)];
        if let Some(forced) = forced_writes(&instance.spec) {
            let how = if forced == "on" { "sync" } else { "async" };
            steps.push(
                within(instance, "gfix").arg("-user").arg("SYSDBA").arg("-write").arg(how).arg("kurabe"),
            );
        }
        Ok(steps)
    }

    /// Not with a password, `ForcedWrites` or the path of the database of users, which the databases contain.
    fn can_use_template(&self, instance: &Instance) -> bool {
        instance.spec.password.is_none() && forced_writes(&instance.spec).is_none()
    }

    fn command(&self, instance: &Instance, _first: bool) -> Launch {
        // The port was not known before. If the file cannot be written, the server does not answer on it.
        let _ = configure(instance);
        launch(instance, &instance.installed.program)
    }

    fn ping(&self, instance: &Instance, _pid: u32) -> Result<(), String> {
        wire::firebird(instance.port)
    }

    fn socket(&self, _site: &Instance) -> Option<PathBuf> {
        None
    }

    fn url(&self, instance: &Instance) -> String {
        let password = if instance.spec.password.is_none() { format!(":{PASSWORD}") } else { String::new() };
        format!("firebird://SYSDBA{password}@127.0.0.1:{}/kurabe", instance.port)
    }
}

/// Writes the server's configuration: the user's settings, then those of the testbed, which override them.
fn configure(instance: &Instance) -> Result<(), TestbedError> {
    let data = instance.data().display().to_string();
    let users = instance.spec.settings.iter().filter(|(key, _)| key != FORCED_WRITES);
    let mut lines: Vec<String> = users.map(|(key, value)| format!("{key} = {value}")).collect();
    lines.extend([
        format!("RemoteServicePort = {}", instance.port),
        format!("SecurityDatabase = {data}/security3.fdb"),
        format!("DatabaseAccess = Restrict {data}"),
        format!("TempDirectories = {}", instance.tmp().display()),
        "RemoteBindAddress = 127.0.0.1\nServerMode = Super\nExternalFileAccess = None".to_owned(),
        "UdfAccess = None\nAuthServer = Srp256, Srp\nUserManager = Srp\n".to_owned(),
    ]);
    instance.write_secret("firebird.conf", &lines.join("\n"))?;
    instance.write_secret("databases.conf", &format!("kurabe = {data}/kurabe.fdb\n"))?;
    Ok(())
}

/// The user's value of `ForcedWrites`.
fn forced_writes(spec: &Spec) -> Option<&str> {
    spec.settings.iter().rfind(|(key, _)| key == FORCED_WRITES).map(|(_, value)| value.as_str())
}

fn tool(name: &str) -> Option<PathBuf> {
    programs::find(name, &programs::folders())
}

fn within(instance: &Instance, name: &str) -> Launch {
    launch(instance, &tool(name).unwrap_or_else(|| PathBuf::from(name)))
}

/// A program of Firebird with the instance's configuration and locks, and the package's messages.
fn launch(instance: &Instance, program: &Path) -> Launch {
    let mut launch = Launch::new("/usr/bin/env");
    let messages = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let messages = messages
        .map(|entry| entry.path().join("firebird/3.0"))
        .find(|folder| folder.join("firebird.msg").exists());
    for (name, path) in [
        ("FIREBIRD=", Some(&instance.dir)),
        ("FIREBIRD_LOCK=", Some(&instance.tmp())),
        ("FIREBIRD_TMP=", Some(&instance.tmp())),
        ("FIREBIRD_MSG=", messages.as_ref()),
    ] {
        let Some(path) = path else { continue };
        let mut variable = std::ffi::OsString::from(name);
        variable.push(path);
        launch = launch.arg(variable);
    }
    launch.arg(program)
}
