//! A remote in a network namespace: another host.

use super::*;

/// A network namespace with a server in it: another host, as far as the network and the processors are concerned.
struct Elsewhere {
    name: String,
    server: Option<std::process::Child>,
    folder: tempfile::TempDir,
}

impl Elsewhere {
    /// The addresses of this side and of the other one.
    const HERE: &str = "10.201.77.1";
    const THERE: &str = "10.201.77.2";
    const PORT: &str = "5433";

    /// A namespace that is linked to this one; `None` without the rights for it.
    fn new() -> Option<Self> {
        let name = format!("kurabe-{}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let made = ip(&format!("netns add {name}"));
        let elsewhere = Self { name: name.clone(), server: None, folder };
        let near = Self::device();
        let ready = made
            && ip(&format!("link add {near} type veth peer name far netns {name}"))
            && ip(&format!("addr add {}/30 dev {near}", Self::HERE))
            && ip(&format!("link set {near} up"))
            && ip(&format!("-n {name} addr add {}/30 dev far", Self::THERE))
            && ip(&format!("-n {name} link set far up"))
            && ip(&format!("-n {name} link set lo up"));
        if !ready {
            tell("no network namespace can be made here");
        }
        ready.then_some(elsewhere)
    }

    fn device() -> String {
        // At most 15 characters.
        format!("kb{}", std::process::id())
    }

    /// Starts PostgreSQL in the namespace, on the last processor.
    fn start(&mut self, program: &std::path::Path) {
        use std::os::unix::fs::PermissionsExt;
        use std::process::{Command, Stdio};
        let data = self.folder.path().join("data");
        std::fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let own = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
        let mut initdb = Command::new("setpriv");
        initdb.args(own).arg(program.with_file_name("initdb")).arg("--pgdata").arg(&data);
        initdb.args(["--username=kurabe", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale"]);
        assert!(initdb.stdout(Stdio::null()).status().unwrap().success());
        let access = data.join("pg_hba.conf");
        let all = std::fs::read_to_string(&access).unwrap() + "\nhost all all 10.201.77.0/30 trust\n";
        std::fs::write(&access, all).unwrap();
        let last = std::thread::available_parallelism().unwrap().get() - 1;
        let mut server = Command::new("ip");
        server.args(["netns", "exec", &self.name, "taskset", "-c", &last.to_string(), "setpriv"]).args(own);
        server.arg(program).arg("-D").arg(&data);
        for setting in [
            format!("listen_addresses={}", Self::THERE),
            format!("port={}", Self::PORT),
            "unix_socket_directories=".to_owned(),
            "dynamic_shared_memory_type=mmap".to_owned(),
        ] {
            server.args(["-c", &setting]);
        }
        self.server = Some(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let address: std::net::SocketAddr = format!("{}:{}", Self::THERE, Self::PORT).parse().unwrap();
        let wait = std::time::Duration::from_secs(1);
        eventually(60, || std::net::TcpStream::connect_timeout(&address, wait).ok())
            .expect("it does not listen");
    }

    fn url() -> String {
        format!("postgres://kurabe@{}:{}/postgres", Self::THERE, Self::PORT)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // A fast shutdown, which also frees its shared memory.
            signal(server, "-INT");
            let _ = server.wait();
        }
        ip(&format!("link del {}", Self::device()));
        ip(&format!("netns del {}", self.name));
    }
}

fn ip(arguments: &str) -> bool {
    let output = std::process::Command::new("ip").args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn remote_in_network_namespace_is_another_host_and_its_processes_are_not_observed() {
    let Some(near) = testing::server("postgres") else { return };
    let Some(mut elsewhere) = Elsewhere::new() else { return };
    elsewhere.start(near.program());
    let place = Place::new();
    let rest = ["--remote", &Elsewhere::url(), "--where", "second,remote", "--way", "local,direct,fdw"];
    let answer = run(&place, &["up:postgres"], &rest);
    let expected = "local/second local/remote direct/second direct/remote fdw/second fdw/remote";
    assert_eq!(verified(&place, &answer), pairs(expected));
    let url = Elsewhere::url();
    let answer = run(&place, &[&url], &["--way", "local", "--where", "same"]);
    assert_eq!(verified(&place, &answer), pairs("local/same"), "the remote was not left clean");
}
