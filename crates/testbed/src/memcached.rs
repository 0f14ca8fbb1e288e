//! memcached.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Launch, Missing, Site};
use crate::options::Spec;
use crate::{programs, wire};

pub(crate) struct Memcached;

impl Engine for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how = "apt-get install memcached, or `cargo xtask setup`".to_owned();
        let Some(program) = programs::find("memcached", &programs::folders()) else {
            return Err(Missing { what: "no program `memcached`".to_owned(), how });
        };
        let line = programs::first_line(Command::new(&program).arg("-V"));
        match line.map(|line| programs::word_after(&line, "memcached")) {
            Ok(Some(version)) => Ok(Installed { program, version }),
            Ok(None) => Err(Missing { what: format!("{} is not memcached", program.display()), how }),
            Err(what) => Err(Missing { what, how }),
        }
    }

    fn refuses_root(&self) -> bool {
        true
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "A",
            "d",
            "daemon",
            "enable-shutdown",
            "l",
            "listen",
            "P",
            "p",
            "pidfile",
            "port",
            "s",
            "U",
            "u",
            "udp-port",
            "unix-mask",
            "unix-socket",
            "user",
            "a",
        ]
    }

    fn check(&self, spec: &Spec) -> Result<(), TestbedError> {
        if spec.password.is_some() {
            let what = "a throwaway memcached has no password".to_owned();
            return Err(TestbedError::BadOption { engine: self.name().to_owned(), what });
        }
        Ok(())
    }

    fn prepare(&self, _site: &Site) -> Result<Vec<Launch>, TestbedError> {
        Ok(Vec::new())
    }

    /// There is none.
    fn is_like_any_other(&self, _site: &Site) -> bool {
        false
    }

    fn command(&self, site: &Site, _first: bool) -> Launch {
        let mut launch = Launch::new(&site.installed.program)
            .arg("--listen=127.0.0.1")
            .arg(format!("--port={}", site.port))
            .arg("--udp-port=0");
        if let Some(tls) = &site.tls {
            let mut option = std::ffi::OsString::from("ssl_chain_cert=");
            option.push(&tls.certificate);
            option.push(",ssl_key=");
            option.push(&tls.key);
            launch = launch.arg("--enable-ssl").arg("-o").arg(option);
        }
        for (key, value) in &site.spec.settings {
            // A letter takes its value as the next argument, a name after the sign; either may have none.
            launch = match (key.len(), value.is_empty()) {
                (1, true) => launch.arg(format!("-{key}")),
                (1, false) => launch.arg(format!("-{key}")).arg(value),
                (_, true) => launch.arg(format!("--{key}")),
                (_, false) => launch.arg(format!("--{key}={value}")),
            };
        }
        launch
    }

    fn ping(&self, site: &Site, pid: u32) -> Result<(), String> {
        // With TLS it answers nothing in the clear; that it listens must do.
        if site.tls.is_some() { wire::tcp(site.port) } else { wire::memcached(site.port, pid) }
    }

    /// It has either a port or a Unix socket, never both.
    fn socket(&self, _site: &Site) -> Option<PathBuf> {
        None
    }

    fn url(&self, site: &Site) -> String {
        format!("memcached://127.0.0.1:{}", site.port)
    }
}
