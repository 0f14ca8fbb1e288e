//! Firebird 3, in its mode `Super`: one process for all databases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::spec::Spec;
use crate::{programs, wire};

pub(crate) static FIREBIRD: Engine = Engine {
    // Firebird does not require it, but its packages run it as a separate user, and so does the testbed.
    refuses_root: true,
    reserved: &[
        "AuthServer", "DatabaseAccess", "ExternalFileAccess", "IpcName", "RemoteAuxPort",
        "RemoteBindAddress", "RemoteServiceName", "RemoteServicePort", "SecurityDatabase", "ServerMode",
        "TempDirectories", "UdfAccess", "UserManager",
    ],
    durability: |class| match class {
        "os-cache" => &[(FORCED_WRITES, "off")],
        "synced" => &[(FORCED_WRITES, "on")],
        _ => &[],
    },
    check,
    has_users: |_, _| true,
    prepare,
    // Not with `ForcedWrites`, which the database contains.
    can_use_template: |instance| forced_writes(&instance.spec).is_none(),
    make_own,
    ..Engine::new(
        "firebird",
        "install it (https://firebirdsql.org), or name its folder: up:firebird?programs=FOLDER",
        find,
        command,
        |instance, _| wire::firebird(instance.port),
        url,
    )
};

/// The setting of the database that decides whether a commit waits for the storage.
const FORCED_WRITES: &str = "ForcedWrites";

/// Where packages install `security.sql`, which creates the database of users.
const SCRIPT: &str = "/usr/share/firebird/3.0/security.sql";

fn find() -> Result<Installed, String> {
    let program = programs::required("firebird")?;
    if programs::any("isql-fb").is_none() || programs::any("gfix").is_none() || !Path::new(SCRIPT).exists() {
        return Err(format!("{} found, but not `isql-fb`, `gfix` and {SCRIPT}", program.display()));
    }
    // `Firebird TCP/IP server version LI-V3.0.11.33637 Firebird 3.0`
    Installed::identify(Command::new(&program).arg("-z"), program, "Firebird 3", |line| {
        let version = line.split_once("-V")?.1.split_whitespace().next()?;
        version.starts_with("3.").then(|| version.to_owned())
    })
}

fn check(spec: &Spec) -> Result<(), String> {
    // Firebird passes over settings that it does not know.
    let is_tls = |(name, _): &(String, String)| ["ssl", "tls"].iter().any(|start| name.starts_with(start));
    if spec.tls || spec.socket_only || spec.settings.iter().any(is_tls) {
        return Err("a throwaway Firebird supports neither TLS nor a Unix socket".to_owned());
    }
    match forced_writes(spec) {
        None | Some("on" | "off") => Ok(()),
        Some(other) => Err(format!("{FORCED_WRITES}={other} is unknown; on or off")),
    }
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    configure(instance)?;
    let data = |name: &str| instance.data().join(name).display().to_string();
    // The tools access the files: no server runs yet. The password is in a script, not in an argument.
    let security = instance.write_secret(
        "security.sql",
        &format!("CREATE DATABASE '{}';\nINPUT '{SCRIPT}';\nCOMMIT;\n", data("security3.fdb")),
    )?;
    let create = format!("CREATE DATABASE '{}' DEFAULT CHARACTER SET UTF8;\nCOMMIT;\n", data("kurabe.fdb"));
    let create = instance.write_secret("create.sql", &create)?;
    let mut steps = vec![isql(instance, security), isql(instance, create)];
    if let Some(forced) = forced_writes(&instance.spec) {
        let how = if forced == "on" { "sync" } else { "async" };
        steps.push(within(instance, "gfix").args(["-user", "SYSDBA", "-write", how, "kurabe"]));
    }
    Ok(steps)
}

/// Sets the password.
fn make_own(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let password = instance.secret().replace('\'', "''");
    let statement = format!(
        "CONNECT kurabe;\nCREATE OR ALTER USER SYSDBA PASSWORD '{password}' USING PLUGIN Srp;\nCOMMIT;\n"
    );
    // Removed once the server has started.
    Ok(vec![isql(instance, instance.write_secret("init.sql", &statement)?)])
}

/// Has a script executed.
fn isql(instance: &Instance, script: PathBuf) -> Launch {
    within(instance, "isql-fb").args(["-bail", "-q", "-user", "SYSDBA", "-i"]).arg(script)
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // The port was not known before. If the file cannot be written, the server does not answer on it.
    let _ = configure(instance);
    launch(instance, &instance.installed.program)
}

fn url(instance: &Instance) -> String {
    format!("firebird://{}@127.0.0.1:{}/kurabe", instance.login("SYSDBA"), instance.port)
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

fn within(instance: &Instance, name: &str) -> Launch {
    launch(instance, &programs::any(name).unwrap_or_else(|| PathBuf::from(name)))
}

/// A program of Firebird with the instance's configuration and locks, and the package's messages.
fn launch(instance: &Instance, program: &Path) -> Launch {
    let messages = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let messages = messages
        .map(|entry| entry.path().join("firebird/3.0"))
        .find(|folder| folder.join("firebird.msg").exists());
    let mut launch = Launch::new("/usr/bin/env")
        .variable("FIREBIRD", &instance.dir)
        .variable("FIREBIRD_LOCK", &instance.tmp())
        .variable("FIREBIRD_TMP", &instance.tmp());
    if let Some(messages) = messages {
        launch = launch.variable("FIREBIRD_MSG", &messages);
    }
    launch.arg(program)
}
