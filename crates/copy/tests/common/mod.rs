//! Copies between databases of tests.

use kurabe_copy::engines::{self, Engine};
use kurabe_copy::event::{Event, TableDone};
use kurabe_copy::issue::Accepted;
use kurabe_copy::page::PageSize;
use kurabe_copy::plan::Plan;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::sql::Side;
use kurabe_copy::wanted::Wanted;
use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::target::TargetUrl;
use kurabe_testbed::testing::{self, Lease};
use std::io::Write as _;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

/// Of a copy that nothing stops.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Pages so small that a few hundred rows make many.
pub const PAGE: PageSize = PageSize { rows: 50, bytes: 1 << 20 };

pub fn driver(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// A session of a database.
pub fn side(url: &str) -> Side {
    let parsed = TargetUrl::parse(url).unwrap();
    let session = driver(url).connect(&ConnectOptions::default()).unwrap();
    Side { session, engine: engines::of_scheme(&parsed.scheme).unwrap(), name: parsed.to_string() }
}

/// Executes statements.
pub fn run(url: &str, statements: &[&str]) {
    let mut side = side(url);
    for statement in statements {
        side.run(statement).unwrap();
    }
}

/// A copy of all tables, or its error; differences of these kinds are accepted.
pub fn copy(from: &str, to: &str, accept: &str) -> Result<(Plan, Vec<TableDone>)> {
    watched(from, to, accept, &NEVER, &mut |_| {})
}

/// A copy whose events are seen, and that stops if `stop` is set.
pub fn watched(
    from: &str,
    to: &str,
    accept: &str,
    stop: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(Plan, Vec<TableDone>)> {
    let accepted = Accepted::parse(accept.split(',').filter(|word| !word.is_empty()))?;
    copied(from, to, &Wanted { accepted, page: PAGE, ..Wanted::default() }, stop, events)
}

/// What asks for all tables with every difference accepted.
pub fn wanted_all(page: PageSize) -> Wanted {
    Wanted { accepted: Accepted::all(), page, ..Wanted::default() }
}

/// A copy of what is wanted.
pub fn copied(
    from: &str,
    to: &str,
    wanted: &Wanted,
    stop: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(Plan, Vec<TableDone>)> {
    let mut copy = Copy::new(side(from), side(to), stop);
    let plan = copy.plan(wanted, &mut [])?;
    if let Some(error) = plan.refusal(&wanted.accepted) {
        return Err(error);
    }
    let done = run_planned(to, &mut copy, &plan, How::default(), events)?;
    Ok((plan, done))
}

/// A copy that nothing stops, and its plan; or the plan's error.
pub fn begun(from: &Place, to: &Place, wanted: &Wanted) -> Result<(Copy<'static>, Plan)> {
    let mut copy = Copy::new(side(&from.url()), side(&to.url()), &NEVER);
    let plan = copy.plan(wanted, &mut [])?;
    Ok((copy, plan))
}

/// The rest of a copy that was planned.
pub fn run_planned(
    to: &str,
    copy: &mut Copy<'_>,
    plan: &Plan,
    how: How<'_>,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<TableDone>> {
    let driver = driver(to);
    let mut namespace = driver.namespace()?;
    namespace.claim("copy")?;
    copy.run(plan, &mut *namespace, how, events)
}

/// A database of a test, whose contents are read and written by the engine's own program, without the code under test.
pub enum Place {
    /// A file of SQLite in a folder of its own.
    File(tempfile::TempDir),
    /// A throwaway server.
    Server(Box<Lease>),
}

impl Place {
    /// A new database; `None` if its server is not installed.
    pub fn new(engine: &str) -> Option<Self> {
        match engine {
            "sqlite" => Some(Self::sqlite()),
            engine => {
                let server = testing::server(engine)?;
                testing::make_superuser(&server);
                Some(Self::Server(Box::new(server)))
            }
        }
    }

    /// A new file of SQLite, in memory if there is enough.
    pub fn sqlite() -> Self {
        let folder = testing::memory().map_or_else(tempfile::tempdir, tempfile::tempdir_in);
        Self::File(folder.unwrap())
    }

    pub fn url(&self) -> String {
        match self {
            Self::File(folder) => format!("sqlite:{}", folder.path().join("db").display()),
            Self::Server(server) => server.url().to_owned(),
        }
    }

    /// The URL for another user, `name:password`.
    pub fn url_of(&self, user: &str) -> String {
        let Self::Server(server) = self else { panic!("a file has no users") };
        server.url().replacen(testing::login(server), user, 1)
    }

    /// Executes statements by the engine's own program. One row a line, fields separated by `|` or a tab.
    pub fn ask(&self, sql: &str) -> String {
        let (code, out, error) = self.try_ask(sql);
        assert!(code, "{sql}: {error}");
        out
    }

    /// The engine.
    pub fn engine(&self) -> &'static Engine {
        engines::of_scheme(&TargetUrl::parse(&self.url()).unwrap().scheme).unwrap()
    }

    /// The same: whether the program succeeded, its output, and its errors.
    pub fn try_ask(&self, sql: &str) -> (bool, String, String) {
        Self::answer(&self.client(Some(sql)).output().unwrap())
    }

    /// Executes a file by the engine's own program, as a user does.
    pub fn feed(&self, file: &str) -> (bool, String, String) {
        Self::fed(&mut self.client(None), file)
    }

    /// The same by the program of a user whose text is in another encoding.
    pub fn feed_in(&self, encoding: &str, file: &str) -> (bool, String, String) {
        let mut client = self.client(None);
        if self.url().starts_with('m') {
            client.arg(format!("--default-character-set={encoding}"));
        }
        Self::fed(client.env("PGCLIENTENCODING", encoding), file)
    }

    fn fed(client: &mut Command, file: &str) -> (bool, String, String) {
        let mut path = tempfile::NamedTempFile::new().unwrap();
        path.write_all(file.as_bytes()).unwrap();
        Self::answer(&client.stdin(path.reopen().unwrap()).output().unwrap())
    }

    fn answer(output: &Output) -> (bool, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout).trim_end().to_owned(), text(&output.stderr))
    }

    /// The engine's own program, which executes these statements, or those of its input.
    fn client(&self, sql: Option<&str>) -> Command {
        match self {
            Self::File(folder) => {
                let mut command = Command::new("sqlite3");
                command.args(["-batch", "-noheader", "-bail"]).arg(folder.path().join("db")).args(sql);
                command
            }
            Self::Server(server) => {
                let socket = || server.socket().unwrap();
                let url = server.url();
                if url.starts_with("postgres") {
                    let mut command = Command::new("psql");
                    command
                        .args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--username=kurabe"])
                        .args(["--dbname=kurabe", "--set=ON_ERROR_STOP=1"])
                        .args(sql.iter().flat_map(|sql| ["--command", *sql]))
                        .arg(format!("--port={}", server.port()))
                        .arg("--host")
                        .arg(socket().parent().unwrap());
                    command
                } else {
                    let mut command = Command::new("mysql");
                    command
                        .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--raw"])
                        .args(["--default-character-set=utf8mb4"])
                        .args(sql.iter().flat_map(|sql| ["--execute", *sql]))
                        .arg("--socket")
                        .arg(socket())
                        .arg("kurabe")
                        .env("MYSQL_PWD", server.password().unwrap());
                    command
                }
            }
        }
    }
}

/// The schema of a database of PostgreSQL, by `pg_dump`.
pub fn dumped(place: &Place) -> String {
    let Place::Server(server) = place else { panic!("a file has no schema") };
    let mut command = Command::new("pg_dump");
    command.args(["--schema-only", "--username=kurabe", "--dbname=kurabe", "--host"]);
    command.arg(server.socket().unwrap().parent().unwrap()).arg(format!("--port={}", server.port()));
    let (ran, text, error) = Place::answer(&command.output().unwrap());
    assert!(ran, "{error}");
    text.lines().filter(|line| !line.starts_with('\\')).collect::<Vec<_>>().join("\n")
}

/// A copy of what is wanted, to its end.
pub fn copy_as(from: &Place, to: &Place, wanted: &Wanted) -> Result<(Plan, Vec<TableDone>)> {
    copied(&from.url(), &to.url(), wanted, &NEVER, &mut |_| {})
}

/// A copy of all tables with every difference accepted, or its error.
pub fn copy_all(from: &Place, to: &Place) -> Result<(Plan, Vec<TableDone>)> {
    copy_as(from, to, &wanted_all(PAGE))
}

/// The plan of a copy of all tables, or its error.
pub fn planned(from: &Place, to: &Place) -> Result<Plan> {
    begun(from, to, &Wanted::default()).map(|(_, plan)| plan)
}

/// Whether a plan lists a difference of this kind whose object and detail contain these words.
pub fn lists(plan: &Plan, kind: &str, words: &str) -> bool {
    plan.issues.iter().any(|issue| {
        issue.kind.name() == kind
            && words.split(' ').all(|word| format!("{} {}", issue.object, issue.detail).contains(word))
    })
}

/// Each kind of difference with words of its object and detail.
pub fn assert_lists(plan: &Plan, expected: &[(&str, &str)]) {
    for (kind, words) in expected {
        assert!(lists(plan, kind, words), "{kind} {words}: {:#?}", plan.issues);
    }
}
