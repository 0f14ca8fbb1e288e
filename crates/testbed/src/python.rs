//! Python under gunicorn, with psycopg 3 and mysqlclient. The application is in `stacks/python`.

use std::process::Command;

use rustix::process::Signal;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::stack::{self, MYSQL, POSTGRES, Stack, Variant};
use crate::{TestbedError, environment, programs};

const APP: &str = include_str!("../stacks/python/app.py");

/// The lowest version, of `match`.
const MIN: (u32, u32) = (3, 10);

pub(crate) static PYTHON: Stack = Stack {
    engine: Engine {
        prepare,
        // It stops its workers then.
        stop_signal: Signal::TERM,
        ..stack::engine("python", find, command, |spec| PYTHON.check(spec))
    },
    variants: &[
        Variant::per_request("mysqlclient", "mysqlclient, a new connection for each request", MYSQL),
        Variant::kept("mysqlclient-persistent", "mysqlclient, a connection for each worker", MYSQL),
        Variant::per_request("psycopg", "psycopg 3, a new connection for each request", POSTGRES),
        Variant::kept("psycopg-persistent", "psycopg 3, a connection for each worker", POSTGRES),
    ],
};

/// The first Python that has gunicorn: another one may come before the distribution's in `PATH`.
fn find() -> Result<Installed, String> {
    let all = programs::folders().into_iter().map(|folder| folder.join("python3"));
    let all: Vec<_> = all.filter(|path| programs::is_program(path)).collect();
    let Some(first) = all.first() else { return Err("no program `python3`".to_owned()) };
    let with = all.iter().find(|python| imports(python, "gunicorn"));
    let python = with.ok_or_else(|| format!("{} has no module gunicorn", first.display()))?.clone();
    // `Python 3.11.2`
    let found = Installed::identify(Command::new(&python).arg("--version"), python, "Python", |line| {
        programs::word_after(line, "Python")
    })?;
    stack::at_least(MIN, "Python", &found.version)?;
    Ok(found)
}

fn imports(python: &std::path::Path, module: &str) -> bool {
    let mut command = Command::new(python);
    let code = format!("import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)");
    environment::without_secrets(command.args(["-c", &code]))
        .output()
        .is_ok_and(|output| output.status.success())
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let application = PYTHON.application(instance)?;
    let module = if POSTGRES.contains(&application.database.kind.as_str()) { "psycopg" } else { "MySQLdb" };
    let Installed { program, version } = &instance.installed;
    if !imports(program, module) {
        return Err(PYTHON.missing(format!("{} has no module {module}", program.display())));
    }
    PYTHON.write(instance, &format!("Python {version}, gunicorn"), [], &[("app.py", APP)])?;
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    Launch::new(&instance.installed.program)
        // Otherwise it writes compiled files.
        .args(["-B", "-m", "gunicorn", "--log-level", "warning", "--workers"])
        .arg(stack::workers(instance).to_string())
        .args(["--bind".to_owned(), format!("127.0.0.1:{}", instance.port)])
        .arg("--worker-tmp-dir")
        .arg(instance.tmp())
        .arg("--chdir")
        .arg(&instance.dir)
        .arg("app:application")
}
