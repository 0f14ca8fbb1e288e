//! MySQL and MariaDB, on their Unix socket (MySQL's internals manual, "Client/Server Protocol").

use std::os::unix::net::UnixStream;

use super::common::{Reset, State, changed, connect, until};
use crate::Server;
use crate::mysql_family;
use crate::mysql_login::{self, failure};

pub(super) static RESET: Reset = Reset { with_tls: true, state, clean };

/// Databases that belong to the server.
const OF_SERVER: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];
/// Variables that the server changes, and the file of which the first start only makes use.
const OF_ITSELF: [&str; 3] = ["gtid_", "innodb_thread_sleep_delay", "init_file"];
const VARIABLE: &str = "variable ";

fn state(server: &Server) -> Result<State, String> {
    let mut session = Session::open(server)?;
    let mut state = variables(&mut session)?;
    for (what, query, needed) in [
        ("database", "SHOW DATABASES", true),
        ("user", "SELECT * FROM mysql.user", true),
        ("plugin", "SHOW PLUGINS", true),
        ("privileges", "SELECT COUNT(*) FROM mysql.db", true),
        ("privileges of tables", "SELECT COUNT(*) FROM mysql.tables_priv", true),
        ("privileges of columns", "SELECT COUNT(*) FROM mysql.columns_priv", true),
        ("privileges of routines", "SELECT COUNT(*) FROM mysql.procs_priv", true),
        ("link", "SELECT Server_name FROM mysql.servers", true),
        ("function", "SELECT name FROM mysql.func", true),
        (
            "system table",
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mysql'",
            true,
        ),
        ("logged", "SELECT COUNT(*) FROM mysql.general_log", true),
        ("logged as slow", "SELECT COUNT(*) FROM mysql.slow_log", true),
        ("prepared transaction", "XA RECOVER", true),
        // Not in all versions of both.
        ("component", "SELECT component_urn FROM mysql.component", false),
        ("redo log", "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'", false),
        ("consumer", "SELECT name, enabled FROM performance_schema.setup_consumers", false),
        ("instruments", INSTRUMENTS, false),
    ] {
        match session.query(query) {
            Ok(rows) => {
                state.extend(rows.iter().map(|row| (format!("{what} {}", row.join("/")), String::new())));
            }
            Err(why) if needed => return Err(why),
            Err(_) => {}
        }
    }
    // The last one of this client may not have ended yet.
    until("other sessions end", || Ok(others(&mut session)?.is_empty()))?;
    Ok(state)
}

const INSTRUMENTS: &str = "SELECT enabled, timed, COUNT(*) FROM performance_schema.setup_instruments \
     GROUP BY enabled, timed";

fn variables(session: &mut Session) -> Result<State, String> {
    let rows = session.query("SHOW GLOBAL VARIABLES")?.into_iter();
    let rows = rows.filter_map(|row| <[String; 2]>::try_from(row).ok());
    let rows = rows.filter(|[name, _]| !OF_ITSELF.iter().any(|prefix| name.starts_with(prefix)));
    Ok(rows.map(|[name, value]| (format!("{VARIABLE}{name}"), value)).collect())
}

/// The sessions of clients but this one.
fn others(session: &mut Session) -> Result<Vec<String>, String> {
    let own = session.query("SELECT CONNECTION_ID()")?.concat().concat();
    let mut rows = session.query("SHOW PROCESSLIST")?;
    rows.retain(|row| {
        let user = row.get(1).map(String::as_str);
        row.first() != Some(&own) && !matches!(user, Some("event_scheduler" | "system user"))
    });
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next()).collect())
}

fn clean(server: &Server, first: &State) -> Result<(), String> {
    let mut session = Session::open(server)?;
    let s = &mut session;
    until("its sessions end", || {
        let others = others(s)?;
        for id in &others {
            // It may have ended meanwhile.
            let _ = s.query(&format!("KILL {id}"));
        }
        Ok(others.is_empty())
    })?;
    for (name, value) in changed(first, &variables(s)?, VARIABLE) {
        let number = value.parse::<f64>().is_ok();
        let value = if number { value } else { quoted(&value) };
        s.query(&format!("SET GLOBAL {name} = {value}"))?;
    }
    for database in s.query("SHOW DATABASES")?.concat() {
        if !OF_SERVER.contains(&&*database) {
            s.query(&format!("DROP DATABASE `{}`", database.replace('`', "``")))?;
        }
    }
    s.query("CREATE DATABASE kurabe CHARACTER SET utf8mb4")?;
    for link in s.query("SELECT Server_name FROM mysql.servers")?.concat() {
        s.query(&format!("DROP SERVER `{}`", link.replace('`', "``")))?;
    }
    let known: Vec<&str> = first.keys().filter_map(|name| name.strip_prefix("user ")).collect();
    for row in s.query("SELECT * FROM mysql.user")? {
        match (&row[..], known.contains(&&*row.join("/"))) {
            ([host, user, ..], false) if user == mysql_family::USER => {
                for statement in mysql_family::privileges(host, is_mysql(server), false) {
                    s.query(&statement)?;
                }
            }
            ([host, user, ..], false) => {
                s.query(&format!("DROP USER {}@{}", quoted(user), quoted(host)))?;
            }
            _ => {}
        }
    }
    // MariaDB keeps those of a name with `é`, which it writes there in another encoding.
    if s.query("SELECT COUNT(*) FROM mysql.procs_priv")?.concat() != ["0"] {
        s.query("DELETE FROM mysql.procs_priv")?;
        s.query("FLUSH PRIVILEGES")?;
    }
    for log in ["general_log", "slow_log"] {
        if s.query(&format!("SELECT COUNT(*) FROM mysql.{log}"))?.concat() != ["0"] {
            s.query(&format!("TRUNCATE mysql.{log}"))?;
        }
    }
    s.query("FLUSH STATUS")?;
    // What only some have: a server without it has nothing to reset either.
    for statement in [
        "RESET PERSIST",
        "ALTER INSTANCE ENABLE INNODB REDO_LOG",
        "RESET BINARY LOGS AND GTIDS",
        "TRUNCATE performance_schema.events_statements_summary_by_digest",
    ] {
        let _ = s.query(statement);
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    mysql_family::quoted(text)
}

fn is_mysql(server: &Server) -> bool {
    server.url().starts_with("mysql:")
}

/// Gives the user of the server's URL all privileges.
pub(in crate::testing) fn make_superuser(server: &Server) -> Result<(), String> {
    let mut session = Session::open(server)?;
    for host in session.query("SELECT host FROM mysql.user WHERE user = 'kurabe'")?.concat() {
        for statement in mysql_family::privileges(&host, is_mysql(server), true) {
            session.query(&statement)?;
        }
    }
    Ok(())
}

struct Session(UnixStream);

impl Session {
    fn open(server: &Server) -> Result<Self, String> {
        let mut stream = connect(server)?;
        mysql_login::log_in(&mut stream, "root", server.password().unwrap_or_default())?;
        Ok(Self(stream))
    }

    fn query(&mut self, statement: &str) -> Result<Vec<Vec<String>>, String> {
        self.rows(statement).map_err(|why| format!("{statement}: {why}"))
    }

    /// The rows, with NULL as an empty text.
    fn rows(&mut self, statement: &str) -> Result<Vec<Vec<String>>, String> {
        const COM_QUERY: u8 = 3;
        self.send(0, &[&[COM_QUERY], statement.as_bytes()].concat())?;
        let (_, head) = self.receive()?;
        if let Some(why) = failure(&head) {
            return Err(why);
        }
        if head.first() == Some(&0) {
            return Ok(Vec::new());
        }
        // The columns, and then the rows; a packet ends each.
        while !is_end(&self.receive()?.1) {}
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.receive()?;
            if let Some(why) = failure(&packet) {
                return Err(why);
            }
            if is_end(&packet) {
                return Ok(rows);
            }
            rows.push(row(&packet).ok_or("a row is cut off")?);
        }
    }

    fn send(&mut self, number: u8, packet: &[u8]) -> Result<(), String> {
        mysql_login::send(&mut self.0, number, packet)
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), String> {
        mysql_login::receive(&mut self.0)
    }
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

fn row(mut packet: &[u8]) -> Option<Vec<String>> {
    const NULL: u8 = 0xfb;
    let mut values = Vec::new();
    while let Some((first, rest)) = packet.split_first() {
        let bytes = match *first {
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => 0,
        };
        let (length, rest) = rest.split_at_checked(bytes)?;
        let length = match (*first, bytes) {
            (NULL, _) => 0,
            (short, 0) => usize::from(short),
            _ => length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)),
        };
        let (value, rest) = rest.split_at_checked(length)?;
        values.push(String::from_utf8_lossy(value).into_owned());
        packet = rest;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_values_of_any_length() {
        let long = "x".repeat(300);
        let packet = [&[1, b'a', 0xfb, 0, 0xfc, 44, 1], long.as_bytes()].concat();
        assert_eq!(row(&packet).unwrap(), ["a", "", "", &long]);
        assert_eq!(row(&packet[..100]), None);
    }
}
