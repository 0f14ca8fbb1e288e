//! Firebird, through its own program `isql-fb`, without which no database is made either.

use std::io::Write;
use std::process::{Command, Stdio};

use super::common::{Reset, State, until};
use crate::Server;

pub(super) static RESET: Reset = Reset { with_tls: false, state, clean };

fn state(server: &Server) -> Result<State, String> {
    let mut state = State::new();
    for (what, query) in [
        ("table", "SELECT TRIM(RDB$RELATION_NAME) FROM RDB$RELATIONS WHERE RDB$SYSTEM_FLAG = 0"),
        ("role", "SELECT TRIM(RDB$ROLE_NAME) FROM RDB$ROLES WHERE RDB$SYSTEM_FLAG = 0"),
        ("user", "SELECT TRIM(SEC$USER_NAME) FROM SEC$USERS"),
        ("character set", "SELECT TRIM(RDB$CHARACTER_SET_NAME) FROM RDB$DATABASE"),
        (
            "database",
            "SELECT MON$FORCED_WRITES || ' ' || MON$PAGE_SIZE || ' ' || MON$PAGE_BUFFERS || ' ' || MON$SWEEP_INTERVAL || ' ' || \
             MON$READ_ONLY || ' ' || MON$RESERVE_SPACE FROM MON$DATABASE",
        ),
    ] {
        let rows = isql(server, &format!("{query};"))?;
        state.extend(rows.into_iter().map(|row| (format!("{what} {row}"), String::new())));
    }
    until("other sessions end", || Ok(isql(server, SESSIONS)? == ["1"]))?;
    Ok(state)
}

const SESSIONS: &str = "SELECT COUNT(*) FROM MON$ATTACHMENTS WHERE MON$SYSTEM_FLAG = 0;";

fn clean(server: &Server, first: &State) -> Result<(), String> {
    isql(server, "DELETE FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID <> CURRENT_CONNECTION;\nCOMMIT;")?;
    until("its sessions end", || Ok(isql(server, SESSIONS)? == ["1"]))?;
    for user in isql(server, "SELECT TRIM(SEC$USER_NAME) FROM SEC$USERS;")? {
        if !first.contains_key(&format!("user {user}")) {
            isql(server, &format!("DROP USER \"{}\";\nCOMMIT;", user.replace('"', "\"\"")))?;
        }
    }
    let create = format!(
        "DROP DATABASE;\nCREATE DATABASE '{}' USER 'SYSDBA' PASSWORD '{}' DEFAULT CHARACTER SET UTF8;",
        database(server),
        server.password().unwrap_or_default()
    );
    isql(server, &create).map(drop)
}

fn database(server: &Server) -> String {
    format!("127.0.0.1/{}:kurabe", server.port())
}

/// Executes statements, and returns the rows of one column.
fn isql(server: &Server, statements: &str) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("isql-fb: {error}");
    let mut command = Command::new("isql-fb");
    command.args(["-bail", "-q"]).arg(database(server));
    // Everybody can read a process's arguments.
    command.env("ISC_USER", "SYSDBA").env("ISC_PASSWORD", server.password().unwrap_or_default());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A program that ends without reading says why.
        let _ = input.write_all(format!("SET HEADING OFF;\n{statements}\n").as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{statements} {}", String::from_utf8_lossy(&output.stderr)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
