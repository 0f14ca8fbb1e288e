//! The drivers. Each is a short program in `xtask/drivers`, or one of the engine's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fetch;
use crate::shell::Outcome;
use crate::testbed::programs;

/// The part of the statement by which it is known.
pub const OWN: &str = "kurabe_own";
const STATEMENT: &str = "SELECT 42 AS kurabe_own";

/// Where drivers from registries of languages are.
pub fn folder() -> Option<PathBuf> {
    Some(programs::cache()?.join("drivers"))
}

/// The programs in the source tree.
fn scripts() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers");
    if folder.is_dir() { Ok(folder) } else { Err(format!("{} is missing", folder.display())) }
}

/// Adds what the commands of the list need to a command's environment.
pub fn configure(command: &mut Command) -> Outcome {
    let folder = folder().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    command.envs(fetch::folder("node").map(|node| ("NODE_PATH", node.join("node_modules"))));
    command.env("DRIVERS", scripts()?).env("CACHE", folder).env("STATEMENT", STATEMENT);
    Ok(())
}

/// The version of a driver; `None` if it is not installed.
pub fn version(driver: &Driver) -> Option<String> {
    let mut command = Command::new("sh");
    command.args(["-c", driver.version]).stdin(Stdio::null()).stderr(Stdio::null());
    configure(&mut command).ok()?;
    let output = command.output().ok().filter(|output| output.status.success())?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!version.is_empty()).then_some(version)
}

/// A driver, or one of its variants.
pub struct Driver {
    /// The title of the server that it connects to.
    pub server: &'static str,
    /// Its name, with the options that differ from the default.
    pub name: &'static str,
    /// Debian's packages; empty if it comes from a registry of its language.
    pub packages: &'static [&'static str],
    /// A shell command that prints its version, and fails if it is missing.
    pub version: &'static str,
    /// A shell command that connects and executes `$STATEMENT`.
    pub command: &'static str,
}

/// MySQL with the `sql_mode` that was its default in 5.6.
const STRICT_OFF: &str = "mysql, not strict";
const PHP_MYSQL: &[&str] = &["php-cli", "php-mysql"];
const PHP_PGSQL: &[&str] = &["php-cli", "php-pgsql"];
const JDK: &[&str] = &["default-jdk-headless", "maven"];
const NODE: &[&str] = &["nodejs", "npm"];
const PHP_VERSION: &str = "php -r 'extension_loaded(\"mysqli\") or exit(1); echo PHP_VERSION;'";
const PDO_VERSION: &str = "php -r 'extension_loaded(\"pdo_mysql\") or exit(1); echo PHP_VERSION;'";
const PGSQL_VERSION: &str = "php -r 'extension_loaded(\"pgsql\") or exit(1); echo PHP_VERSION;'";
const PDO_PGSQL_VERSION: &str = "php -r 'extension_loaded(\"pdo_pgsql\") or exit(1); echo PHP_VERSION;'";

/// The version in the name of the only jar of a folder.
macro_rules! jar {
    ($folder:literal) => {
        concat!(
            "java -version 2>/dev/null && ls \"$CACHE/java/",
            $folder,
            "\" | sed -nE 's/^.*-([0-9.]+)\\.jar$/\\1/p' | grep ."
        )
    };
}

/// Java's program with the driver of a folder.
macro_rules! jdbc {
    ($folder:literal, $scheme:literal, $properties:literal) => {
        concat!(
            "java -cp \"$(echo \"$CACHE\"/java/",
            $folder,
            "/*.jar)\" \"$DRIVERS/Jdbc.java\" ",
            $scheme,
            " '",
            $properties,
            "' \"$STATEMENT\""
        )
    };
}

/// Connector/J without and with the four properties, one by one and together. They were said in 2012 to switch off the
/// statements that it sends.
macro_rules! connector_j {
    ($name:literal, $folder:literal; $($what:literal: $properties:literal),*) => {
        [$(Driver {
            server: STRICT_OFF,
            name: concat!($name, $what),
            packages: JDK,
            version: jar!($folder),
            command: jdbc!($folder, "mysql", $properties),
        }),*]
    };
}

const CONNECTOR_J: [Driver; 6] = connector_j!("Connector/J", "connector-j";
    "": "",
    ", cacheServerConfiguration": "cacheServerConfiguration=true",
    ", useLocalSessionState": "useLocalSessionState=true",
    ", characterSetResults": "characterSetResults=UTF-8",
    ", jdbcCompliantTruncation=false": "jdbcCompliantTruncation=false",
    ", all four": "cacheServerConfiguration=true&useLocalSessionState=true&characterSetResults=UTF-8&jdbcCompliantTruncation=false");

const CONNECTOR_J_5: [Driver; 6] = connector_j!("Connector/J 5.1", "connector-j-5.1";
    "": "",
    ", cacheServerConfiguration": "cacheServerConfiguration=true",
    ", useLocalSessionState": "useLocalSessionState=true",
    ", characterSetResults": "characterSetResults=UTF-8",
    ", jdbcCompliantTruncation=false": "jdbcCompliantTruncation=false",
    ", all four": "cacheServerConfiguration=true&useLocalSessionState=true&characterSetResults=UTF-8&jdbcCompliantTruncation=false");

#[rustfmt::skip]
const OTHERS: [Driver; 19] = [
    Driver { server: "mysql", name: "Connector/J", packages: JDK, version: jar!("connector-j"), command: jdbc!("connector-j", "mysql", "") },
    Driver { server: "mysql", name: "mariadb", packages: &["mariadb-client"], version: "mariadb --version | sed -nE 's/^.*Distrib ([^,-]+).*$/\\1/p'",
        command: "mariadb -h \"$KURABE_HOST\" -P \"$KURABE_PORT\" -u \"$KURABE_USER\" \"$KURABE_DATABASE\" -e \"$STATEMENT\"" },
    Driver { server: "mysql", name: "PHP mysqli", packages: PHP_MYSQL, version: PHP_VERSION, command: "php \"$DRIVERS/mysqli.php\" \"$STATEMENT\"" },
    Driver { server: "mysql", name: "PHP PDO", packages: PHP_MYSQL, version: PDO_VERSION, command: "php \"$DRIVERS/pdo.php\" mysql \"$STATEMENT\"" },
    Driver { server: "mysql", name: "Perl DBD::mysql", packages: &["libdbd-mysql-perl"], version: "perl -MDBD::mysql -e 'print $DBD::mysql::VERSION'", command: "perl \"$DRIVERS/dbi.pl\" mysql \"$STATEMENT\"" },
    Driver { server: "mysql", name: "Perl DBD::MariaDB", packages: &["libdbd-mariadb-perl"], version: "perl -MDBD::MariaDB -e 'print $DBD::MariaDB::VERSION'", command: "perl \"$DRIVERS/dbi.pl\" MariaDB \"$STATEMENT\"" },
    Driver { server: "mysql", name: "Python mysqlclient", packages: &["python3-mysqldb"], version: "/usr/bin/python3 -c 'import MySQLdb; print(MySQLdb.__version__)'", command: "/usr/bin/python3 \"$DRIVERS/dbapi.py\" MySQLdb \"$STATEMENT\"" },
    Driver { server: "mysql", name: "Python PyMySQL", packages: &["python3-pymysql"], version: "/usr/bin/python3 -c 'import pymysql; print(pymysql.__version__)'", command: "/usr/bin/python3 \"$DRIVERS/dbapi.py\" pymysql \"$STATEMENT\"" },
    Driver { server: "mysql", name: "Node mysql2", packages: NODE, version: "node -p 'require(\"mysql2/package.json\").version'", command: "node \"$DRIVERS/node/mysql2.js\" \"$STATEMENT\"" },
    Driver { server: "mysql", name: "MariaDB Connector/J", packages: JDK, version: jar!("mariadb-java-client"), command: jdbc!("mariadb-java-client", "mariadb", "") },
    Driver { server: "postgres", name: "psql", packages: &["postgresql-client"], version: "psql --version | sed -nE 's/^[^0-9]*([0-9.]+).*$/\\1/p'", command: "psql -wXc \"$STATEMENT\"" },
    Driver { server: "postgres", name: "PHP pg_connect", packages: PHP_PGSQL, version: PGSQL_VERSION, command: "php \"$DRIVERS/pg_connect.php\" \"$STATEMENT\"" },
    Driver { server: "postgres", name: "PHP PDO", packages: PHP_PGSQL, version: PDO_PGSQL_VERSION, command: "php \"$DRIVERS/pdo.php\" pgsql \"$STATEMENT\"" },
    Driver { server: "postgres", name: "Perl DBD::Pg", packages: &["libdbd-pg-perl"], version: "perl -MDBD::Pg -e 'print $DBD::Pg::VERSION'", command: "perl \"$DRIVERS/dbi.pl\" Pg \"$STATEMENT\"" },
    Driver { server: "postgres", name: "Python psycopg 3", packages: &["python3-psycopg"], version: "/usr/bin/python3 -c 'import psycopg; print(psycopg.__version__)'", command: "/usr/bin/python3 \"$DRIVERS/dbapi.py\" psycopg \"$STATEMENT\"" },
    Driver { server: "postgres", name: "Python psycopg2", packages: &["python3-psycopg2"], version: "/usr/bin/python3 -c 'import psycopg2; print(psycopg2.__version__.split()[0])'", command: "/usr/bin/python3 \"$DRIVERS/dbapi.py\" psycopg2 \"$STATEMENT\"" },
    Driver { server: "postgres", name: "pgjdbc", packages: JDK, version: jar!("pgjdbc"), command: jdbc!("pgjdbc", "postgresql", "") },
    Driver { server: "postgres", name: "Node pg", packages: NODE, version: "node -p 'require(\"pg/package.json\").version'", command: "node \"$DRIVERS/node/pg.js\" \"$STATEMENT\"" },
    Driver { server: "redis", name: "redis-cli", packages: &["redis-tools"], version: "redis-cli --version | sed -nE 's/^[^0-9]*([0-9.]+).*$/\\1/p'", command: "redis-cli -h \"$KURABE_HOST\" -p \"$KURABE_PORT\" GET kurabe_own" },
];

/// All of them, by engine.
pub fn all() -> impl Iterator<Item = &'static Driver> {
    static ALL: [&[Driver]; 3] = [&CONNECTOR_J, &CONNECTOR_J_5, &OTHERS];
    ALL.iter().copied().flatten()
}

/// A server that drivers connect to.
pub struct Server {
    /// The heading of its table.
    pub title: &'static str,
    pub engine: &'static str,
    pub settings: &'static [&'static str],
}

/// The servers, in the order of the page.
pub const SERVERS: [Server; 4] = [
    Server { title: "mysql", engine: "mysql", settings: &[] },
    // Today's default is strict, so that a driver that requires it has nothing to set.
    Server { title: STRICT_OFF, engine: "mysql", settings: &["sql_mode=NO_ENGINE_SUBSTITUTION"] },
    Server { title: "postgres", engine: "postgres", settings: &[] },
    Server { title: "redis", engine: "redis", settings: &[] },
];
