//! What a run requires of its targets.

use crate::shared::SharedServers;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::planned::CacheNeed;
use kurabe_core::remote::RemoteServer;
use kurabe_core::target::TargetUrl;
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Ownership;
use kurabe_testbed::StartOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data that stacks serve.
#[derive(Clone, Debug, Default)]
pub struct StackData {
    /// The experiments. Those that stacks do not serve have no data.
    pub experiments: Vec<String>,
    /// The seed of the data.
    pub seed: u64,
    /// The number of records; `None`: the experiment's default.
    pub records: Option<u64>,
}

/// What a run requires of its targets.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The durability class of every acknowledged write.
    pub durability: Option<DurabilityClass>,
    /// The minimum number of connections of throwaway servers.
    pub connections: u64,
    /// The cache in front of every target, as given.
    pub cache: Option<String>,
    /// The caches that the cells need in front of each target.
    pub caches: Vec<CacheNeed>,
    /// For each target, whether these are in front of it; all, where that is not said.
    pub cached: Vec<bool>,
    /// Whether throwaway servers cache little of their data, so that a cache in front of them can matter.
    pub small_cache: bool,
    /// The second server that `--remote` names, as given.
    pub remote: Option<String>,
    /// The second servers that the cells need beside each target.
    pub remotes: Vec<RemoteServer>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// For each target, whether its A/A control should run on a second instance of its server, if possible.
    pub second_instances: Vec<bool>,
    /// For each target, whether the run only reads there.
    pub only_reads: Vec<bool>,
    /// The data that application stacks serve.
    pub stack_data: StackData,
    /// Whether throwaway servers are not started. Only what their drivers know is known of them then.
    pub dry: bool,
    /// The schema and data of throwaway servers: a file, or `copy:` and the URL of a database, as given.
    pub setup: Option<String>,
    /// For each target, a file of SQL that changes its throwaway server once `setup` is loaded, if there is one.
    pub changes: Vec<Option<PathBuf>>,
    /// Whether a target that cannot be opened is left out, and no error.
    pub tolerant: bool,
    /// The throwaway servers that this run shares with others; `None`: it starts its own. Servers with links, caches,
    /// small caches and remotes are always its own.
    pub shared: Option<Arc<SharedServers>>,
}

impl OpenOptions {
    /// The servers that runs share, if one of them may serve this target. A server with links or a small cache has other settings
    /// than they, and one with a set-up of its own other data.
    pub(crate) fn shared_for(&self, options: &StartOptions, has_setup: bool) -> Option<&SharedServers> {
        let is_alone = options.links || options.small_cache || has_setup;
        self.shared.as_deref().filter(|_| !is_alone)
    }

    /// What a run requires. `cache` and `remote` are the URLs as given, with their passwords.
    pub fn of(plan: &Plan, cache: Option<&str>, remote: Option<&str>) -> Self {
        let spec = &plan.spec;
        Self {
            durability: spec.durability,
            connections: plan.connections(),
            cache: cache.map(str::to_owned),
            caches: plan.caches(),
            cached: Vec::new(),
            // A replay has data of its own.
            small_cache: plan.experiment.takes_cache && spec.custom.is_none(),
            remote: remote.map(str::to_owned),
            remotes: plan.remotes(),
            cpu_partition: spec.slice_ns.and_then(|_| CpuPartition::of_this_machine()),
            second_instances: (0..spec.targets.len())
                .map(|target| plan.wants_second_instance(target))
                .collect(),
            only_reads: (0..spec.targets.len())
                .map(|target| spec.durability.is_none() && plan.need(target) == Ownership::Nothing)
                .collect(),
            stack_data: StackData {
                experiments: vec![spec.experiment.clone()],
                seed: spec.seed,
                records: spec.records,
            },
            setup: spec.setup.as_ref().map(|setup| setup.from.clone()),
            changes: Vec::new(),
            dry: false,
            tolerant: false,
            shared: None,
        }
    }

    /// The file that changes a target's server once it is loaded.
    pub(crate) fn change(&self, target: usize) -> Option<&Path> {
        self.changes.get(target).and_then(Option::as_deref)
    }

    /// Whether the run only reads on this target.
    pub(crate) fn only_reads(&self, target: usize) -> bool {
        self.only_reads.get(target) == Some(&true)
    }

    /// Whether the A/A control of a target should run on a second instance of its server. Not behind a cache or with
    /// a remote, since these would be other ones too. Applications and external servers have only one instance.
    pub(crate) fn second_instance(&self, target: usize) -> bool {
        self.second_instances.get(target) == Some(&true)
            && !self.has_caches(target)
            && self.remotes.is_empty()
    }

    /// Whether caches are in front of a target.
    pub(crate) fn has_caches(&self, target: usize) -> bool {
        !self.caches.is_empty() && self.cached.get(target) != Some(&false)
    }
}

/// The option of databases in files by which they are opened for reading only.
pub(crate) const ACCESS: &str = "access";

/// The URL with the option by which its driver opens an existing database for reading only, as it is, where it has one.
pub(crate) fn for_reading(mut url: TargetUrl) -> TargetUrl {
    let options =
        kurabe_drivers::registry::find(&url.scheme).map(|driver| driver.options).unwrap_or_default();
    if options.iter().any(|option| option.name == ACCESS) && !url.path.is_empty() {
        url.options.entry(ACCESS.to_owned()).or_insert_with(|| "read".to_owned());
    }
    url
}
