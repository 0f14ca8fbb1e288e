//! Dumps and restores by the programs of MySQL and MariaDB. The password is in their environment.

use super::config::{Config, ServerKey};
use super::session::Unusual;
use crate::dump::{Programs, over_tls};
use crate::prelude::*;
use crate::program;
use crate::wire::Place;
use crate::wire::link::{Query, value};
use kurabe_core::dump::RowOrder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct MysqlDump {
    config: Config,
    link: Box<dyn Query>,
    dump: PathBuf,
    restore: PathBuf,
    /// Whether each program is MySQL's own, and not MariaDB's.
    of_mysql: [bool; 2],
    names: String,
    /// The statement that gives a session the usual values of its settings, if the server gives it others.
    usual: Option<String>,
}

impl MysqlDump {
    /// Finds the programs: those of the server's own family first.
    pub(super) fn new(config: &Config, mut link: Box<dyn Query>, unusual: Option<&Unusual>) -> Result<Self> {
        if !config.tls.is_off() {
            return Err(over_tls());
        }
        let version = value(&mut *link, "SELECT VERSION()")?.unwrap_or_default();
        if version.starts_with("5.5.") && !version.contains("MariaDB") {
            // Those of MySQL 9 lack `mysql_native_password`; MariaDB's read columns of tables that 5.5 does not have.
            return Err(Error::unsupported("current programs of MySQL and MariaDB cannot dump MySQL 5.5"));
        }
        let is_mariadb = version.contains("MariaDB");
        let ([mut dumps, mut restores], package) =
            ([["mysqldump", "mariadb-dump"], ["mysql", "mariadb"]], "apt-get install mariadb-client");
        if is_mariadb {
            dumps.reverse();
            restores.reverse();
        }
        let is_own = |line: &str| !line.is_empty() && line.contains("MariaDB") == is_mariadb;
        let find = |names: &[&str]| program::find_of(names, package, is_own);
        let (dump, restore) = (find(&dumps)?, find(&restores)?);
        let versions = [program::version(&dump), program::version(&restore)];
        let of_mysql = versions.each_ref().map(|line| !line.contains("MariaDB"));
        // Its queries of columns and of rows have the server's limit, and it says nothing of it.
        if !of_mysql[0] && unusual.is_some_and(Unusual::limits_rows) {
            return Err(Error::unsupported(
                "mariadb-dump loses columns and rows where the server has a sql_select_limit",
            ));
        }
        let names = versions.join("; ");
        let usual = unusual.and_then(Unusual::statement);
        Ok(Self { config: config.clone(), link, dump, restore, of_mysql, names, usual })
    }

    fn command(&self, program: &Path, of_mysql: bool) -> Command {
        let config = &self.config;
        let mut command = Command::new(program);
        // It must come first. The user's files could change what is dumped.
        command.arg("--no-defaults").arg(format!("--user={}", config.user));
        // The target is without TLS, which newer programs would use where the server has it.
        if of_mysql {
            command.arg("--ssl-mode=DISABLED");
            if config.server_key == ServerKey::Asked {
                command.arg("--get-server-public-key");
            }
        } else {
            command.arg("--skip-ssl");
        }
        match &config.place {
            Place::Tcp { host, port } => {
                command.arg("--protocol=TCP").arg(format!("--host={host}")).arg(format!("--port={port}"));
            }
            Place::Unix(path) => {
                command.arg("--protocol=SOCKET").arg(format!("--socket={}", path.display()));
            }
        }
        // Nothing of the user's settings for other servers; MySQL's programs read a login file in spite of --no-defaults.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["MYSQL_", "MARIADB_", "LIBMYSQL_"].iter().any(|start| name.starts_with(start)) {
                command.env_remove(&*name);
            }
        }
        command.env("MYSQL_TEST_LOGIN_FILE", "/nonexistent");
        command.env("MYSQL_PWD", config.password.expose()).stdin(Stdio::null());
        command
    }
}

/// The option by which rows are dumped in this order. What follows the condition is part of the statement.
fn order_option(table: &Collection, order: RowOrder) -> String {
    let names = |fields: &[usize]| {
        let names = fields.iter().filter_map(|at| table.fields.get(*at));
        names.map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
    };
    let order = match order {
        RowOrder::Key => names(&table.key),
        RowOrder::Index => {
            names(&[table.indexes.first().map_or(&[][..], Vec::as_slice), &table.key].concat())
        }
        RowOrder::Random => "RAND(1)".to_owned(),
    };
    format!("--where=1 ORDER BY {order}")
}

impl Programs for MysqlDump {
    /// With comments.
    const END: &'static str = "-- Dump completed";

    fn names(&self) -> &str {
        &self.names
    }

    fn dump(&self, table: &Collection, order: RowOrder) -> Command {
        let mut command = self.command(&self.dump, self.of_mysql[0]);
        // Without locks and without tablespaces, which take privileges that a run does not need.
        command.args(["--single-transaction", "--no-tablespaces", "--skip-triggers"]);
        if self.of_mysql[0] {
            command.arg("--set-gtid-purged=OFF");
        }
        // MariaDB's has no such option.
        let usual = self.usual.iter().filter(|_| self.of_mysql[0]);
        command.args(usual.map(|set| format!("--init-command={set}")));
        command.arg(order_option(table, order)).arg(&self.config.database).arg(&table.name);
        command
    }

    fn restore(&self) -> Command {
        let mut command = self.command(&self.restore, self.of_mysql[1]);
        // With autocommit off, what the program restores would not be committed.
        command.args(self.usual.iter().map(|set| format!("--init-command={set}")));
        command.arg(&self.config.database);
        command
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        // Table names of Kurabe contain no quotes. The statistics are as old as the last analysis.
        self.link.query(&format!("ANALYZE TABLE `{}`", table.name), &mut Reply::new())?;
        // MySQL 8 keeps an older answer for a day; MariaDB has no such variable.
        let _ = self.link.query("SET SESSION information_schema_stats_expiry = 0", &mut Reply::new());
        let sql = format!(
            "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND \
             table_name = '{}'",
            table.name
        );
        Ok(value(&mut *self.link, &sql)?.and_then(|bytes| bytes.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::collection::Field;

    #[test]
    fn order_of_the_index_is_completed_by_the_key() {
        let field = |name| Field { name, kind: FieldType::Int };
        let mut table = Collection::new("kurabe_0_t", vec![field("id1"), field("id2")], vec![0, 1]);
        table.indexes = vec![vec![1]];
        assert_eq!(order_option(&table, RowOrder::Key), "--where=1 ORDER BY `id1`, `id2`");
        assert_eq!(order_option(&table, RowOrder::Index), "--where=1 ORDER BY `id2`, `id1`, `id2`");
    }
}
