//! PostgreSQL, on its Unix socket, which asks for no password (its manual, "Message Flow").

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::common::{Reset, State, connect, until};
use crate::Server;

pub(super) static RESET: Reset = Reset { with_tls: true, state, clean };

/// Objects of users have higher numbers than those of a new database.
const FIRST_OF_USERS: u32 = 16_384;

fn state(server: &Server) -> Result<State, String> {
    let mut session = Session::open(server, "postgres")?;
    let mut state = State::new();
    for (what, query) in [
        ("setting", "SELECT name, setting FROM pg_settings"),
        (
            "in a file of settings",
            "SELECT sourceline, name FROM pg_file_settings WHERE sourcefile ~ 'auto.conf$'",
        ),
        (
            "database",
            "SELECT datname, concat_ws('/', pg_get_userbyid(datdba), datacl, datistemplate, datallowconn, \
             datconnlimit, datcollate) FROM pg_database",
        ),
        ("role", "SELECT rolname, a::text FROM pg_authid a"),
        (
            "rule of access",
            "SELECT line_number, concat_ws('/', type, database, user_name, address, netmask, auth_method, options, error) \
             FROM pg_hba_file_rules",
        ),
        (
            "member of a role",
            "SELECT roleid, member FROM pg_auth_members WHERE grantor >= 16384 OR member >= 16384",
        ),
        (
            "setting of a database or role",
            "SELECT setdatabase || '/' || setrole, setconfig FROM pg_db_role_setting",
        ),
        ("tablespace", "SELECT spcname, spcacl FROM pg_tablespace"),
        ("replication slot", "SELECT slot_name, slot_type FROM pg_replication_slots"),
        ("prepared transaction", "SELECT gid, database FROM pg_prepared_xacts"),
    ] {
        for row in session.query(query)? {
            let [name, value] = <[String; 2]>::try_from(row).unwrap_or_default();
            state.insert(format!("{what} {name}"), value);
        }
    }
    // The last one of this client may not have ended yet.
    until("other sessions end", || Ok(session.query(SESSIONS)?.is_empty()))?;
    for database in ["postgres", "kurabe"] {
        let mut session = Session::open(server, database)?;
        for catalogue in
            ["class", "proc", "namespace", "type", "extension", "foreign_server", "event_trigger"]
        {
            let query = format!("SELECT count(*) FROM pg_{catalogue} WHERE oid >= {FIRST_OF_USERS}");
            let count = session.query(&query)?.concat().concat();
            state.insert(format!("{catalogue} in {database}"), count);
        }
    }
    Ok(state)
}

/// All other sessions of clients.
const SESSIONS: &str = "SELECT pid, usename FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND \
     backend_type IN ('client backend', 'walsender')";

fn clean(server: &Server, _first: &State) -> Result<(), String> {
    let mut session = Session::open(server, "postgres")?;
    let s = &mut session;
    until("its sessions end", || {
        Ok(s.query(&format!("SELECT pg_terminate_backend(pid) FROM ({SESSIONS}) s"))?.is_empty())
    })?;
    s.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")?;
    for name in names(s, "pg_database", "datname", "datname NOT IN ('postgres', 'template0', 'template1')")? {
        s.query(&format!("DROP DATABASE {name} WITH (FORCE)"))?;
    }
    for name in names(s, "pg_roles", "rolname", "oid >= 16384 AND rolname <> 'kurabe'")? {
        s.query(&format!("DROP OWNED BY {name} CASCADE"))?;
        s.query(&format!("DROP ROLE {name}"))?;
    }
    for name in names(s, "pg_tablespace", "spcname", "oid >= 16384")? {
        s.query(&format!("DROP TABLESPACE {name}"))?;
    }
    if !s.query("SELECT 1 FROM pg_db_role_setting")?.is_empty() {
        for name in names(s, "pg_roles", "rolname", "oid IN (SELECT setrole FROM pg_db_role_setting)")? {
            s.query(&format!("ALTER ROLE {name} RESET ALL"))?;
        }
        s.query("ALTER ROLE ALL RESET ALL")?;
        s.query("ALTER DATABASE postgres RESET ALL")?;
    }
    s.query("DROP OWNED BY kurabe CASCADE")?;
    s.query("ALTER ROLE kurabe NOSUPERUSER")?;
    s.query("CREATE DATABASE kurabe OWNER kurabe")?;
    if !s.query("SELECT 1 FROM pg_file_settings WHERE sourcefile ~ 'auto.conf$'")?.is_empty() {
        s.query("ALTER SYSTEM RESET ALL")?;
        let asked = s.query("SELECT clock_timestamp()")?.concat().concat();
        s.query("SELECT pg_reload_conf()")?;
        // A session that begins after the server has read its files has the new settings.
        let read = format!("SELECT 1 WHERE pg_conf_load_time() >= '{asked}'");
        until("it reads its settings", || Ok(!Session::open(server, "postgres")?.query(&read)?.is_empty()))?;
    }
    for what in ["bgwriter", "archiver"] {
        s.query(&format!("SELECT pg_stat_reset_shared('{what}')"))?;
    }
    Ok(())
}

/// The quoted names in a catalogue.
fn names(session: &mut Session, from: &str, column: &str, filter: &str) -> Result<Vec<String>, String> {
    let rows = session.query(&format!("SELECT quote_ident({column}) FROM {from} WHERE {filter}"))?;
    Ok(rows.into_iter().flatten().collect())
}

struct Session(UnixStream);

impl Session {
    fn open(server: &Server, database: &str) -> Result<Self, String> {
        const VERSION_3_0: u32 = 3 << 16;
        let mut session = Self(connect(server)?);
        let mut message = VERSION_3_0.to_be_bytes().to_vec();
        message.extend(format!("user\0postgres\0database\0{database}\0search_path\0pg_catalog\0\0").bytes());
        session.send(None, &message).map_err(|error| format!("a new session: {error}"))?;
        session.until_ready()?;
        Ok(session)
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> std::io::Result<()> {
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend((4 + body.len() as u32).to_be_bytes());
        message.extend(body);
        self.0.write_all(&message)
    }

    fn query(&mut self, statement: &str) -> Result<Vec<Vec<String>>, String> {
        let mut body = statement.as_bytes().to_vec();
        body.push(0);
        self.send(Some(b'Q'), &body).map_err(|error| format!("{statement}: {error}"))?;
        self.until_ready().map_err(|why| format!("{statement}: {why}"))
    }

    /// Reads until the next statement may be sent; returns the rows, with NULL as an empty text.
    fn until_ready(&mut self) -> Result<Vec<Vec<String>>, String> {
        let (mut rows, mut failure) = (Vec::new(), None);
        loop {
            let (kind, body) = self.receive().map_err(|error| failure.take().unwrap_or(error.to_string()))?;
            match kind {
                b'Z' => return failure.map_or(Ok(rows), Err),
                b'E' => failure = Some(crate::wire::postgres_message(&[&[0; 4], &body[..]].concat())),
                b'R' if body != [0; 4] => return Err("it asks for a password".to_owned()),
                b'D' => rows.push(row(&body).ok_or("a row is cut off")?),
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        self.0.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

fn row(body: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        // NULL has the length -1.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, after) = after.split_at_checked(length)?;
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    Some(values)
}
