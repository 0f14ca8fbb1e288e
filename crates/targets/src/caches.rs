//! The caches in front of targets.

use crate::direct::{open_one, without_server};
use crate::opened::Opened;
use crate::options::OpenOptions;
use crate::reporter::Reporter;
use crate::stacks::spec::check_scheme;
use crate::throwaway::{not_started_url, start, up_options, with_server_affinity};
use kurabe_core::facts::Setting;
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::{Error, Result};
use kurabe_drivers::members::{Member, Role};
use std::sync::Arc;

/// The default time to live of an item in a throwaway cache, in seconds.
const CACHE_TTL: &str = "3600";

/// Rejects targets that are not caches, before any server is started.
pub(crate) fn check_cache(url: &TargetUrl) -> Result<()> {
    check_scheme(url).map_err(|error| error.context("--cache"))?;
    let caches: Vec<&str> = kurabe_testbed::caches().collect();
    let name = if url.scheme == UP { url.path.as_str() } else { url.scheme.trim_end_matches('s') };
    if caches.iter().any(|cache| *cache == name || cache.trim_end_matches('s') == name) {
        return Ok(());
    }
    Err(Error::usage(format!("--cache: {name} is not a cache"))
        .hint(format!("there are: {}", caches.join(", "))))
}

impl Opened {
    /// The caches of one target: a throwaway server per size, or the external one.
    pub(crate) fn caches(
        &mut self,
        url: &TargetUrl,
        open_options: &OpenOptions,
        reporter: &dyn Reporter,
    ) -> Result<Vec<Member>> {
        let throwaway = url.scheme == UP;
        // The size of an external cache cannot be set, and a throwaway one did not exist before.
        let fitting = open_options.caches.iter().filter(|wanted| wanted.capacity.is_some() == throwaway);
        let mut caches = Vec::new();
        for wanted in fitting {
            let reached = if throwaway && open_options.dry {
                not_started_url(url)?
            } else if throwaway {
                let mut server = up_options(url, open_options.connections)?;
                server.room = wanted.capacity;
                reporter.note(&format!("starting throwaway {} as cache {} …", url.path, wanted.name));
                let server = Arc::new(with_server_affinity(open_options.cpu_partition.as_ref(), || {
                    start(url, &server)
                })?);
                let mut reached = self.reached(url, server)?;
                reached.options.entry("ttl".to_owned()).or_insert_with(|| CACHE_TTL.to_owned());
                reached
            } else {
                url.clone()
            };
            let made = if throwaway && open_options.dry {
                without_server(&reached)
            } else {
                open_one(&reached, None)
            };
            let (driver, mut facts, _) = made.map_err(|error| error.context(url))?;
            facts.settings.extend(reached.option("ttl").map(|ttl| Setting::new("ttl", format!("{ttl} s"))));
            let claims = throwaway || self.shared.insert(reached.to_string());
            let role = Role::Cache(wanted.name.clone());
            caches.push(Member { role, driver, facts, ours: throwaway, claims });
        }
        Ok(caches)
    }
}
