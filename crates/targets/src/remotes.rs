//! Opens the second servers of targets.

use crate::direct::{open_one, without_server};
use crate::opened::Opened;
use crate::options::OpenOptions;
use crate::reporter::Reporter;
use crate::stacks::spec::check_scheme;
use crate::throwaway::{not_started_url, of_url, start, with_server_affinity};
use kurabe_core::driver::Driver;
use kurabe_core::remote::{RemoteAddress, RemoteServer};
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::{Error, Result};
use kurabe_drivers::members::{Member, Role};
use kurabe_testbed::Server;
use std::sync::Arc;

/// What the second servers of a target depend on.
pub(crate) struct RemoteContext<'a> {
    /// The target as given.
    pub(crate) url: &'a TargetUrl,
    pub(crate) reached: &'a TargetUrl,
    /// The server that `--remote` names.
    pub(crate) given: Option<&'a TargetUrl>,
}

impl RemoteContext<'_> {
    /// The target to open as a remote; or why there is none, as a clause.
    fn remote(&self, server: RemoteServer, driver: &dyn Driver) -> Result<TargetUrl, String> {
        let host = |mtu: u32| {
            if self.url.scheme != UP {
                return Err("throwaway servers (up:) only are started on a host of their own; --remote names another server".to_owned());
            }
            kurabe_testbed::has_own_host(&self.url.path)?;
            let mut url = self.url.clone();
            url.options.insert("mtu".to_owned(), mtu.to_string());
            Ok(url)
        };
        match server {
            RemoteServer::Given => {
                self.given.cloned().ok_or_else(|| "no remote server is named: --remote TARGET".to_owned())
            }
            RemoteServer::Host => host(1_500),
            RemoteServer::HostJumbo => host(9_000),
            _ if self.url.scheme == UP => Ok(self.url.clone()),
            _ if driver.capabilities().is_temporary => Ok(self.reached.clone()),
            _ => Err("a second instance can be started of throwaway servers and temporary files only; \
                      --remote names another server"
                .to_owned()),
        }
    }
}

/// The remotes of a target.
#[derive(Default)]
pub(crate) struct Remotes {
    pub(crate) members: Vec<Member>,
    /// Why the target has no other ones, as clauses.
    pub(crate) missing: Vec<(RemoteServer, String)>,
    /// The throwaway servers that were started for it.
    pub(crate) servers: Vec<Arc<Server>>,
}

/// The server that `--remote` names.
///
/// # Errors
/// If it is no target, or no cell uses it.
pub(crate) fn given(open_options: &OpenOptions) -> Result<Option<TargetUrl>> {
    let Some(text) = &open_options.remote else { return Ok(None) };
    let url = TargetUrl::parse(text).map_err(|error| error.context("--remote"))?;
    check_scheme(&url).map_err(|error| error.context("--remote"))?;
    if open_options.remotes.contains(&RemoteServer::Given) {
        return Ok(Some(url));
    }
    Err(Error::usage("--remote: no cell uses the server that it names")
        .hint("an axis of the experiment chooses the server; --help names it"))
}

impl Opened {
    /// Opens the remotes that a run needs beside a target. What a target cannot have is a reason for its cells, and no
    /// error.
    ///
    /// # Errors
    /// If a remote does not start or cannot be used.
    pub(crate) fn remotes(
        &mut self,
        driver: &mut dyn Driver,
        beside: &RemoteContext<'_>,
        open_options: &OpenOptions,
        reporter: &dyn Reporter,
    ) -> Result<Remotes> {
        let mut remotes = Remotes::default();
        for &server in &open_options.remotes {
            if server == RemoteServer::Same {
                let url = address(beside.reached, driver);
                driver.add_remote(RemoteAddress { server, url });
                continue;
            }
            let url = &match beside.remote(server, driver) {
                Ok(url) => url,
                Err(why) => {
                    remotes.missing.push((server, why));
                    continue;
                }
            };
            let role = Role::Remote(server);
            reporter.wait_for(format!("{} of {} to start", role.word(), beside.url));
            let ours = url.scheme == UP || server != RemoteServer::Given;
            let dry = open_options.dry && url.scheme == UP;
            let reached = if dry {
                not_started_url(url)?
            } else if url.scheme == UP {
                let mut options = of_url(url, open_options.durability, open_options.connections, reporter)?;
                options.links = true;
                let started =
                    with_server_affinity(open_options.cpu_partition.as_ref(), || start(url, &options));
                let started = Arc::new(started.map_err(|error| error.context(role.word()))?);
                remotes.servers.push(Arc::clone(&started));
                self.reached(url, started)?
            } else {
                url.clone()
            };
            let opened = if dry { without_server(&reached) } else { open_one(&reached, None) };
            let (remote, of, _) = opened.map_err(|error| error.context(url).context(role.word()))?;
            driver.add_remote(RemoteAddress { server, url: address(&reached, &*remote) });
            let claims = ours || self.shared.insert(reached.to_string());
            remotes.members.push(Member { role, driver: remote, facts: of, ours, claims });
        }
        Ok(remotes)
    }
}

/// The URL by which another database reaches one: of a file, its path.
fn address(reached: &TargetUrl, driver: &dyn Driver) -> TargetUrl {
    let file = driver.links().ok().and_then(kurabe_core::driver::Links::file);
    let file = file.map(|file| file.to_string_lossy().into_owned());
    TargetUrl { path: file.unwrap_or_else(|| reached.path.clone()), ..reached.clone() }
}
