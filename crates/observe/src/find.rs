//! Finds a server's processes by the address at which it listens.

use crate::own_host;
use crate::process::{Pid, numbers};
use kurabe_core::observation::Endpoint;
use kurabe_os::diag::{LISTEN, NetlinkClient};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::path::Path;

/// The processes that own the server's listening socket; else why they were not found, as a clause.
pub(crate) fn listeners(endpoint: &Endpoint) -> Result<Vec<Pid>, String> {
    let inodes = match endpoint {
        Endpoint::Composite(members) => {
            let mut found: Vec<Pid> = Vec::new();
            // An in-process database is observed as the client.
            for member in members.iter().filter(|member| member.endpoint != Endpoint::InProcess) {
                // Two members may be one server, and the processes of the first member stay first.
                let new = listeners(&member.endpoint)?;
                found.extend(new.into_iter().filter(|pid| !found.contains(pid)).collect::<Vec<_>>());
            }
            return if found.is_empty() { Err("it has no process of its own".to_owned()) } else { Ok(found) };
        }
        Endpoint::InProcess => return Err("it has no process of its own".to_owned()),
        Endpoint::Elsewhere(why) => return Err(why.clone()),
        Endpoint::Tcp { host, port } => of_port(host, *port)?,
        Endpoint::Unix(path) => of_path(path)?,
    };
    let (holders, closed) = holders(&inodes);
    let own = std::process::id();
    match holders.as_slice() {
        [] if closed => {
            Err("its processes belong to another user: only that user or root can see their sockets"
                .to_owned())
        }
        [] => Err("no visible process listens there; it may run in a container".to_owned()),
        some if some.iter().any(|pid| pid.number == own) => {
            Err("this process itself listens there".to_owned())
        }
        some => match some.iter().find_map(|pid| forwarder(&program(pid.number)?)) {
            Some(name) => Err(format!("{name} stands before it")),
            None => Ok(some.to_vec()),
        },
    }
}

/// Programs that pass on what a server says, by the beginning of their name, and what they are called.
const FORWARDERS: [(&str, &str); 19] = [
    ("pgbouncer", "PgBouncer"),
    ("pgcat", "pgcat"),
    ("odyssey", "Odyssey"),
    ("pgpool", "Pgpool-II"),
    ("proxysql", "ProxySQL"),
    ("maxscale", "MaxScale"),
    ("mysqlrouter", "MySQL Router"),
    ("nutcracker", "twemproxy"),
    ("mcrouter", "mcrouter"),
    ("haproxy", "HAProxy"),
    ("envoy", "Envoy"),
    ("stunnel", "stunnel"),
    ("socat", "socat"),
    ("ssh", "an SSH tunnel"),
    ("kubectl", "kubectl"),
    ("docker-proxy", "Docker's proxy"),
    ("rootlessport", "Podman's proxy"),
    ("cloud-sql-proxy", "Cloud SQL Proxy"),
    ("cloud_sql_proxy", "Cloud SQL Proxy"),
];

fn forwarder(program: &str) -> Option<&'static str> {
    FORWARDERS.iter().find(|(name, _)| program.starts_with(name)).map(|(_, name)| *name)
}

/// The name of a process's program, which is cut after 15 bytes if its file cannot be seen.
fn program(process: u32) -> Option<String> {
    let file = fs::read_link(format!("/proc/{process}/exe")).ok();
    let file = file.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    file.or_else(|| Some(fs::read_to_string(format!("/proc/{process}/comm")).ok()?.trim_end().to_owned()))
}

/// Where on this machine a server listens that others reach at this host and port. If the host is not a name of this
/// machine but a translated address, any local address counts.
pub(crate) fn here(host: &str, port: u16) -> Endpoint {
    let known = (host, port)
        .to_socket_addrs()
        .is_ok_and(|mut addresses| addresses.any(|address| is_local(address.ip())));
    let host = if known { host.to_owned() } else { IpAddr::from([0, 0, 0, 0]).to_string() };
    Endpoint::Tcp { host, port }
}

/// Whether an address is one of this machine. The kernel sends from the same address to its own addresses, and to no other.
/// Binding does not show it: `net.ipv4.ip_nonlocal_bind` allows any address.
fn is_local(address: IpAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a UDP socket chooses its source address and sends nothing. The port is arbitrary.
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    address.is_loopback() || address.is_unspecified() || source().is_ok_and(|source| source.ip() == address)
}

fn of_port(host: &str, port: u16) -> Result<BTreeSet<u64>, String> {
    let all: Vec<IpAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {host}: {error}"))?
        .map(|address| address.ip().to_canonical())
        .collect();
    if let [address] = *all
        && own_host::is_there(address)
    {
        let inodes = own_host::listening(address, port);
        return if inodes.is_empty() {
            Err(format!("no process listens at {host}:{port}"))
        } else {
            Ok(inodes)
        };
    }
    let addresses: Vec<IpAddr> = all.into_iter().filter(|address| is_local(*address)).collect();
    if addresses.is_empty() {
        return Err(format!("the server runs on another host, {host}"));
    }
    let sockets = NetlinkClient::new()
        .and_then(|mut netlink| netlink.sockets(LISTEN, port, 0))
        .map_err(|error| format!("cannot list the kernel's sockets: {error}"))?;
    let inodes: BTreeSet<u64> = sockets
        .iter()
        .filter(|socket| {
            let any = addresses.iter().all(IpAddr::is_unspecified);
            any || socket.local.0.is_unspecified() || addresses.contains(&socket.local.0)
        })
        .map(|socket| socket.inode)
        .collect();
    if inodes.is_empty() { Err(format!("no process here listens at port {port}")) } else { Ok(inodes) }
}

fn of_path(path: &Path) -> Result<BTreeSet<u64>, String> {
    let text =
        fs::read_to_string("/proc/net/unix").map_err(|error| format!("cannot list Unix sockets: {error}"))?;
    let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let inodes = listening_at(&text, &[path, &resolved]);
    if inodes.is_empty() {
        return Err(format!("no process here listens at {}", path.display()));
    }
    Ok(inodes)
}

/// Lines of `/proc/net/unix`: address, references, protocol, flags, type, state, inode, path.
fn listening_at(text: &str, paths: &[&Path]) -> BTreeSet<u64> {
    /// `__SO_ACCEPTCON`
    const LISTENS: &str = "00010000";
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let path = Path::new(words.get(7)?);
            (words[3] == LISTENS && paths.contains(&path)).then(|| words[6].parse().ok()).flatten()
        })
        .collect()
}

/// The processes that have one of these sockets open, and whether the sockets of any process could not be read.
fn holders(inodes: &BTreeSet<u64>) -> (Vec<Pid>, bool) {
    let mut found = Vec::new();
    let mut closed = false;
    for number in numbers("/proc") {
        let folder = format!("/proc/{number}/fd");
        let Ok(entries) = fs::read_dir(&folder) else {
            closed |= Path::new(&folder).exists();
            continue;
        };
        let holds = entries.flatten().any(|entry| {
            fs::read_link(entry.path())
                .ok()
                .and_then(|link| socket_of(&link))
                .is_some_and(|i| inodes.contains(&i))
        });
        if holds {
            found.extend(Pid::of(number));
        }
    }
    (found, closed)
}

/// The inode in `socket:[123]`.
fn socket_of(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The inodes of all sockets that this process has open.
pub(crate) fn own_sockets() -> BTreeSet<u64> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    entries.flatten().filter_map(|entry| socket_of(&fs::read_link(entry.path()).ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn forwarders_are_told_from_databases() {
        assert_eq!(forwarder("pgbouncer"), Some("PgBouncer"));
        for database in ["postgres", "mysqld", "mariadbd", "redis-server", "memcached", "beam.smp", "kurabe"]
        {
            assert_eq!(forwarder(database), None, "{database}");
        }
        let own = std::env::current_exe().unwrap();
        assert_eq!(program(std::process::id()).as_deref(), own.file_name().unwrap().to_str());
    }

    #[test]
    fn listener_is_found_by_port_or_path_and_own_process_is_rejected() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let own: Vec<u32> =
            holders(&of_port("127.0.0.1", port).unwrap()).0.iter().map(|pid| pid.number).collect();
        assert_eq!(own, [std::process::id()]);
        let error = listeners(&Endpoint::Tcp { host: "127.0.0.1".into(), port }).unwrap_err();
        assert!(error.contains("this process"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let own: Vec<u32> = holders(&of_path(&path).unwrap()).0.iter().map(|pid| pid.number).collect();
        assert_eq!(own, [std::process::id()]);
    }

    #[test]
    fn server_on_other_host_is_reported_as_such() {
        let refused = |endpoint| listeners(&endpoint).unwrap_err();
        // RFC 5737 reserves this address for documentation.
        let error = refused(Endpoint::Tcp { host: "192.0.2.1".into(), port: 5_432 });
        assert!(error.contains("another host"), "{error}");
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let error = refused(Endpoint::Tcp { host: "127.0.0.1".into(), port: free });
        assert!(error.contains("no process here listens"), "{error}");
        let error = refused(Endpoint::Unix("/nowhere/at/all".into()));
        assert!(error.contains("/nowhere/at/all"), "{error}");
        assert_eq!(refused(Endpoint::Elsewhere("why".into())), "why");
    }
}
