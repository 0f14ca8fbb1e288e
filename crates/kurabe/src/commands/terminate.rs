//! `kurabe capture --tls terminate`: the certificate that is made for a capture, and what clients have to know of it.

use super::wire::{Far, Relayed};
use crate::output::Output;
use kurabe_capture::recorder::Ending;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_drivers::embedded::Temporary;
use kurabe_drivers::registry;
use kurabe_os::private;
use kurabe_testbed::sign;
use kurabe_wire::environment::{Environment, environment, through_tls};
use kurabe_wire::relay::At;
use kurabe_wire::terminate::{Certificate, Failure, Terminator};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// TLS of one capture.
pub(super) struct Terminated {
    terminator: Terminator,
    /// The file of the authority that clients have to trust, in a folder that is removed with this value.
    authority: PathBuf,
    _folder: Temporary,
    /// Why the server was not trusted, or did not agree.
    refused: Arc<Mutex<Option<Error>>>,
}

impl Terminated {
    /// Makes the certificate.
    ///
    /// # Errors
    /// Usage, if the target's URL says that there is no TLS; or if a file cannot be read or written.
    pub(super) fn prepare(relayed: &Relayed, far: &Far) -> Result<Self> {
        let Relayed { url, protocol, listen, .. } = relayed;
        let Some(host) = &far.certified else {
            return Err(url.wrong("a Unix socket needs no TLS").hint("leave --tls terminate out"));
        };
        let said = ["tls", "sslmode", "ssl-mode"].into_iter().find(|name| url.option(name).is_some());
        let to_server = match (registry::tls(url)?, said) {
            (Some(config), _) => config,
            (None, Some(name)) => {
                let what = format!("{name}= says that there is no TLS, and --tls terminate that there is");
                return Err(url.wrong(what).hint("remove one"));
            }
            // The client decides: it is a choice of each connection.
            (None, None) if protocol.refusal.is_some() => registry::strict_tls()?,
            (None, None) => {
                return Err(url
                    .wrong("--tls terminate is for a server whose connections begin with TLS")
                    .hint("add tls=verify or tls=require to the target, or leave --tls terminate out"));
            }
        };
        let At::Tcp(address) = &listen.at else {
            return Err(Error::usage("--listen unix: is for clients without TLS")
                .hint("leave --tls terminate out, or listen at an address"));
        };
        let address = address.ip();
        let mut names = vec!["localhost", "127.0.0.1", "::1"];
        let name = address.to_string();
        if !address.is_unspecified() && !names.contains(&name.as_str()) {
            names.push(&name);
        }
        let failed = |what: &str, error: std::io::Error| {
            Error::new(ErrorKind::Environment, format!("the certificate of the capture: {what}: {error}"))
        };
        let signed = sign("Kurabe capture", &names).map_err(|error| failed("cannot be made", error))?;
        let (certificate, key) = &signed.server;
        let terminator = Terminator::new(to_server, host, Certificate { certificate, key })?;
        // No key is ever in a file, and a killed capture leaves nothing.
        let folder = Temporary::make(&std::env::temp_dir()).map_err(|error| failed("no folder", error))?;
        let authority = folder.path().join("ca.pem");
        private::write_new(&authority, signed.ca.as_bytes())
            .map_err(|error| failed(&authority.display().to_string(), error))?;
        Ok(Self { terminator, authority, _folder: folder, refused: Arc::default() })
    }

    /// What the recorder does about it. It tells at once what goes wrong; of the server only if there is no command, whose
    /// end tells it.
    pub(super) fn ending(&self, relayed: &Relayed, output: &Output) -> Ending {
        let (refused, authority, output) = (Arc::clone(&self.refused), self.authority.clone(), *output);
        let (target, has_command) = (relayed.url.to_string(), !relayed.command.is_empty());
        let tell = move |failure: &Failure| match failure {
            Failure::Server(error) => {
                let error = error.clone().context(&target);
                if !has_command {
                    output.warning(&error.to_string());
                }
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            Failure::Client(error) => {
                let file = authority.display();
                output.warning(&format!("{error}; each client has to trust the authority in {file}"));
            }
            Failure::Lost(_) => {}
        };
        Ending { terminator: self.terminator.clone(), tell: Box::new(tell) }
    }

    /// Says what clients have to do.
    pub(super) fn note(&self, relayed: &Relayed, output: &Output) {
        let file = self.authority.display();
        output.note(&format!(
            "TLS ends here: a client trusts it by the authority in {file} (KURABE_CA), which is removed at the end"
        ));
        for (name, value) in relayed.protocol.variables.ended {
            output.note(&format!(
                "a login that is bound to the server's certificate cannot pass: set {name}={value}, as COMMAND has it"
            ));
        }
    }

    /// The target's URL for clients.
    pub(super) fn through(&self, relayed: &Relayed, relay: &At) -> TargetUrl {
        through_tls(&relayed.url, relay, &relayed.protocol.variables, &self.authority.to_string_lossy())
    }

    /// The environment of the command.
    pub(super) fn environment(&self, relayed: &Relayed, relay: &At) -> Environment {
        let authority = self.authority.to_string_lossy();
        environment(&relayed.url, relay, &relayed.protocol.variables, Some(&authority))
    }

    /// Why the server was not trusted, or did not agree, if that was so.
    pub(super) fn refused(&self) -> Option<Error> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
