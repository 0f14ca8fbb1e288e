//! Proxies between the client and MySQL, which are found before anything is locked or created.
//!
//! A server names its connection in the greeting, and in its list of connections. A proxy such as `ProxySQL` or `MaxScale`
//! greets with a number of its own, and answers `CONNECTION_ID()` with either. The list is the server's own. If the proxy
//! gives a server connection to another client while this one is still connected, then a lock or a prepared statement of a
//! session does not belong to that session.

use crate::prelude::*;
use crate::wire::link::{Query, value};

/// How often two connections are compared. Other clients of the proxy may take the server's connection in between.
const TRIES: usize = 4;

/// A name that only a statement of this kind contains.
const MARK: &str = "kurabe_which_connection";

/// The server's number of the connection that executes this. The greeting has 32 bits of it.
fn number(link: &mut dyn Query) -> Result<Option<u32>> {
    let sql = format!(
        "SELECT id FROM information_schema.processlist WHERE info LIKE '%{MARK}%' \
         AND user = SUBSTRING_INDEX(USER(), '@', 1) ORDER BY id = CONNECTION_ID() DESC LIMIT 1"
    );
    let found = value(link, &sql)?;
    Ok(found.and_then(|text| text.parse::<u64>().ok()).map(|number| number as u32))
}

/// Checks whether a proxy stands before the server; `greeted` is the number in its greeting. Returns the proxy's name if
/// it keeps sessions apart.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if it shares connections of the server among connected clients; or the server's
/// error.
pub(super) fn check<L: Query>(
    first: &mut L,
    greeted: u32,
    connect: impl Fn() -> Result<L>,
) -> Result<Option<String>> {
    let Some(number) = number(first)? else { return Ok(None) };
    if number == greeted {
        return Ok(None);
    }
    let name = name(first)?;
    for _ in 0..TRIES {
        let before = self::number(first)?;
        let mut other = connect()?;
        // In a transaction it keeps its connection. The first session is idle, and has none in a shared pool.
        other.query("START TRANSACTION", &mut Reply::new())?;
        let shared = self::number(&mut other)? == before || self::number(first)? != before;
        other.query("ROLLBACK", &mut Reply::new())?;
        other.quit()?;
        if shared {
            let message = format!(
                "{name} stands before the server and shares its connections among clients: locks and prepared statements of a \
                 session would stay on connections that others get"
            );
            return Err(Error::unsupported(message)
                .hint("name the server itself, or switch this sharing off for the user (ProxySQL: transaction_persistent and multiplexing; MySQL Router: connection_sharing=0)"));
        }
    }
    Ok(Some(name))
}

/// The proxy's name, by what only it answers.
fn name(link: &mut dyn Query) -> Result<String> {
    for (sql, name) in [
        ("PROXYSQL INTERNAL SESSION", "ProxySQL"),
        ("SELECT @@maxscale_version", "MaxScale"),
        ("ROUTER SET trace = 0", "MySQL Router"),
    ] {
        match value(link, sql) {
            Ok(_) => return Ok(name.to_owned()),
            Err(error) if error.server_code().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok("a proxy (such as ProxySQL, MaxScale or MySQL Router)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session behind a proxy: the number of the server's connection at each request, and what it is.
    struct Behind {
        numbers: Vec<u32>,
        proxysql: bool,
    }

    impl Query for Behind {
        fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
            out.clear();
            if sql.starts_with("PROXYSQL") && self.proxysql {
                return Ok(());
            }
            if ["PROXYSQL", "SELECT @@", "ROUTER"].iter().any(|word| sql.starts_with(word)) {
                return Err(Error::new(ErrorKind::Server, "syntax").code("1064"));
            }
            if sql.contains(MARK) {
                let number = if self.numbers.len() > 1 { self.numbers.remove(0) } else { self.numbers[0] };
                out.push_bytes(number.to_string().as_bytes());
                out.end_row();
            }
            Ok(())
        }

        fn quit(&mut self) -> Result<()> {
            Ok(())
        }

        fn transport(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn proxy_is_found_and_refused_if_it_shares_connections() {
        let check = |first: Vec<u32>, second: u32, proxysql| {
            let mut first = Behind { numbers: first, proxysql };
            check(&mut first, 7, || Ok(Behind { numbers: vec![second], proxysql }))
        };
        // The server itself; session by session; the second client gets the connection of the first, or displaces it.
        assert_eq!(check(vec![7], 8, false).unwrap(), None);
        assert_eq!(check(vec![40], 41, true).unwrap().as_deref(), Some("ProxySQL"));
        assert!(check(vec![40], 41, false).unwrap().unwrap().contains("MaxScale"));
        for (first, second) in [(vec![40], 40), (vec![40, 40, 41], 42)] {
            let error = check(first, second, true).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Unsupported && error.to_string().contains("ProxySQL"),
                "{error}"
            );
        }
    }
}
