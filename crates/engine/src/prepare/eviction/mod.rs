//! Protects the values of other users in a server with limited memory, such as a cache.
//!
//! Before anything is loaded, [`check`] compares what the run stores with what is free. During the run `Watch` reads
//! the memory, and stops the run before the server evicts anything, or at once if it has evicted something.

mod watch;

pub(crate) use watch::{Stopped, Watch};

use crate::plan::Plan;
use crate::prepare::target::Target;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::memory::{LimitedServer, StoreMemory};
use kurabe_core::observation::Endpoint;
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::CellRecord;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::HashSet;
use std::time::Duration;

/// Time limit of each answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The fewest writes of a client in a trial.
const MIN_WRITES: u64 = 20;
/// Bytes of a server's memory for one connection.
const CONNECTION: u64 = 64 << 10;

/// What the run stores on one target.
#[derive(Default)]
struct Stored {
    values: u64,
    bytes: u64,
    /// The largest mean size of a value.
    value_bytes: u64,
    /// Memory for connections and their requests.
    connections: u64,
    /// The number of cells whose trials add as many values as they have time for.
    growing: u64,
}

impl Stored {
    /// What all cells on the servers of one target store. Cells that share data count once.
    fn new(plan: &Plan, targets: &[usize]) -> Self {
        let (mut all, mut counted) = (Self::default(), HashSet::new());
        let here = plan.cells.iter().filter(|cell| targets.contains(&cell.record.target));
        for run_cell in here.filter(|cell| !cell.record.second_instance) {
            let Some(cell) = run_cell.available() else { continue };
            let each = mean_size(cell);
            all.value_bytes = all.value_bytes.max(each);
            let connections =
                cell.connections().saturating_mul(CONNECTION.saturating_add(cell.demand.request_bytes));
            all.connections = all.connections.max(connections);
            if counted.insert((run_cell.slot, &cell.dataset)) {
                all.add(plan.loaded_bytes(cell), each);
            }
            match growth(plan, &run_cell.record, cell) {
                Growth::Known(values) => all.add(values.saturating_mul(each), each),
                Growth::Unknown => {
                    all.growing += 1;
                    all.add(least_writes(cell).saturating_mul(each), each);
                }
            }
        }
        all
    }

    fn add(&mut self, bytes: u64, each: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.values = self.values.saturating_add(bytes.div_ceil(each));
    }

    fn needed(&self, memory: &StoreMemory) -> u64 {
        memory.needed(self.values, self.bytes).saturating_add(self.connections)
    }
}

/// Values that a trial of a cell may add.
enum Growth {
    /// At most so many.
    Known(u64),
    /// As many as the clients add in the time of a trial.
    Unknown,
}

fn growth(plan: &Plan, record: &CellRecord, cell: &PlannedCell) -> Growth {
    let is_measured = |name: &str| !record.unavailable_operations.contains_key(name);
    let mut writes =
        plan.operations.iter().filter(|operation| operation.writes && is_measured(operation.name)).peekable();
    // With a capacity, records are changed in place.
    if writes.peek().is_none() || cell.policy.capacity.is_some() {
        return Growth::Known(0);
    }
    if cell.is_job() {
        // It writes what it loads, or as much.
        return Growth::Known(cell.demand.loaded_bytes.div_ceil(mean_size(cell)));
    }
    let known = writes.map(|operation| {
        let stop = plan.stop(operation);
        // Warm-up comes on top.
        stop.requests.filter(|_| stop.min.is_none()).map(|requests| requests.saturating_add(requests / 4))
    });
    known
        .collect::<Option<Vec<u64>>>()
        .and_then(|all| all.into_iter().max())
        .map_or(Growth::Unknown, Growth::Known)
}

/// The fewest writes of a trial of a cell that are worth measuring.
fn least_writes(cell: &PlannedCell) -> u64 {
    MIN_WRITES.saturating_mul(cell.policy.clients as u64).saturating_mul(cell.policy.pipeline)
}

/// The mean size of a cell's values in bytes.
fn mean_size(cell: &PlannedCell) -> u64 {
    cell.stored_bytes.unwrap_or(cell.demand.value_bytes).max(1)
}

/// The memory that stays free besides what the run needs: the time until [`Watch`] notices what is written.
fn reserve(memory: &StoreMemory) -> u64 {
    (memory.limit / 10).min(64 << 20)
}

/// The servers of a target whose memory is limited.
fn servers(target: &Target) -> Result<Vec<LimitedServer>> {
    if target.skip_reason.is_some() {
        return Ok(Vec::new());
    }
    match target.driver.limited_servers(&ConnectOptions::within(TIMEOUT)) {
        // A throwaway server is not started for a plan alone.
        Err(error) if target.is_not_started(&error) => Ok(Vec::new()),
        servers => servers,
    }
}

/// A target's name, with the role of one of its servers.
fn name(target: &Target, server: &LimitedServer) -> String {
    let role = server.role;
    if role.is_empty() { target.name.clone() } else { format!("{}: {role}", target.name) }
}

/// Checks that what the run loads fits into the free memory of each server that evicts values or refuses the writes of
/// others when it is full, and limits what trials add to what is free: a value of the run that is evicted fails its trial. Call
/// it when the targets hold nothing of earlier runs.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit) with the figures; or the server's error.
pub fn check(plan: &mut Plan, targets: &[Target]) -> Result<()> {
    if plan.spec.allow_eviction {
        return Ok(());
    }
    for same in by_server(targets) {
        let target = &targets[same[0]];
        let stored = Stored::new(plan, &same);
        for mut server in servers(target).map_err(|error| error.context(&target.name))? {
            let name = name(target, &server);
            let read = server.probe.read(stored.value_bytes).map_err(|error| error.context(&name))?;
            let Some(memory) = read else { continue };
            // A throwaway server has no other users; the estimate is generous.
            let is_own = server.role.is_empty() && target.restart.is_some();
            let left = match fits(&name, &memory, &stored) {
                Err(_) if is_own => 0,
                left => left?,
            };
            // What a cache in front of the target gets is a part of what is loaded.
            if stored.growing == 0 || !server.role.is_empty() {
                continue;
            }
            // Agents of a fleet plan the cells again, without this limit.
            match (&plan.spec.fleet, memory.foreign_keys()) {
                (None, _) => limit_growth(plan, &same, &memory, left / stored.growing),
                (Some(_), 0) => {}
                (Some(_), _) => {
                    let why = format!(
                        "{name}: clients of a fleet write as much as they have time for, and the server has keys of others"
                    );
                    return Err(Error::new(ErrorKind::Limit, why).hint(HINT));
                }
            }
        }
    }
    Ok(())
}

/// Leaves out the cells with the largest values, as long as those of all do not fit into the free memory of a server, if a default
/// value of an axis is the reason: a cell with another one stores less. `free` are the axes with default values.
///
/// # Errors
/// The server's.
pub fn leave_out_largest(plan: &mut Plan, targets: &[Target], free: &[String]) -> Result<()> {
    if plan.spec.allow_eviction || free.is_empty() {
        return Ok(());
    }
    for same in by_server(targets) {
        let target = &targets[same[0]];
        for mut server in servers(target).map_err(|error| error.context(&target.name))? {
            loop {
                let stored = Stored::new(plan, &same);
                let read =
                    server.probe.read(stored.value_bytes).map_err(|error| error.context(&target.name))?;
                let Some(memory) = read.filter(|memory| stored.needed(memory) > memory.free) else { break };
                let [needed, left, limit] =
                    [stored.needed(&memory), memory.free, memory.limit].map(units::size);
                let why = format!(
                    "with these values the run needs about {needed} of memory, and the server has {left} free of {limit} ({})",
                    memory.set_by
                );
                if !plan.leave_out_largest(&same, free, mean_size, &why) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The targets by the server that they are on.
fn by_server(targets: &[Target]) -> Vec<Vec<usize>> {
    let mut all: Vec<(Endpoint, Vec<usize>)> = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        let endpoint = target.driver.endpoint();
        match all.iter_mut().find(|(known, _)| *known == endpoint) {
            Some((_, same)) => same.push(at),
            None => all.push((endpoint, vec![at])),
        }
    }
    all.into_iter().map(|(_, same)| same).collect()
}

/// Limits what trials add to the fewest writes and this much memory more for each cell.
fn limit_growth(plan: &mut Plan, targets: &[usize], memory: &StoreMemory, room: u64) {
    let grows = |record: &CellRecord, cell: &PlannedCell| {
        targets.contains(&record.target) && matches!(growth(plan, record, cell), Growth::Unknown)
    };
    let most = |cell: &PlannedCell| {
        least_writes(cell).saturating_add(room / memory.needed(1, mean_size(cell)).max(1))
    };
    let growing: Vec<(CellRecord, u64)> = plan
        .available()
        .filter(|(record, cell)| grows(record, cell))
        .map(|(record, cell)| (record.clone(), most(cell)))
        .collect();
    plan.limit_writes(|record, _| {
        let same = |known: &CellRecord| {
            known.target == record.target
                && known.axes == record.axes
                && known.aa_control == record.aa_control
        };
        growing.iter().find(|(known, _)| same(known)).map(|(_, most)| *most)
    });
}

/// Advice if a run does not fit.
const HINT: &str = "use fewer --records or --requests, a smaller --payload, or a server with more memory (memcached -m, \
                    maxmemory of Redis); --allow-eviction runs all the same, and the server may lose the values of others";

/// The memory that the run leaves.
fn fits(name: &str, memory: &StoreMemory, stored: &Stored) -> Result<u64> {
    let others = memory.foreign_keys();
    let needed = stored.needed(memory).saturating_add(if others > 0 { reserve(memory) } else { 0 });
    if let Some(left) = memory.free.checked_sub(needed) {
        return Ok(left);
    }
    let keys = match others {
        0 => "no keys of others".to_owned(),
        1 => "1 key of others".to_owned(),
        many => format!("{} keys of others", units::count(many)),
    };
    let [needed, free, limit] = [needed, memory.free, memory.limit].map(units::size);
    let (set_by, when_full) = (&memory.set_by, &memory.when_full);
    let why = format!(
        "{name}: the run needs about {needed} of memory, and the server has {free} free of {limit} ({set_by}), with \
         {keys}; when its memory is full, it {when_full}"
    );
    Err(Error::new(ErrorKind::Limit, why).hint(HINT))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn memory(free: u64, evicted: u64) -> StoreMemory {
        StoreMemory {
            limit: 60_000_000,
            set_by: "maxmemory = 62914560".to_owned(),
            free,
            keys: 1_001,
            own_keys: 1,
            evicted,
            when_full: "evicts keys (maxmemory-policy = allkeys-lru)".to_owned(),
            value_overhead: 100,
        }
    }

    #[test]
    fn load_that_does_not_fit_is_refused_with_figures() {
        let stored =
            Stored { values: 1_000, bytes: 10_000_000, value_bytes: 10_000, connections: 0, growing: 0 };
        assert!(
            fits("cache", &memory(30_000_000, 0), &stored).is_ok_and(|left| left < 30_000_000 - 18_500_000)
        );
        let error = fits("cache", &memory(13_000_000, 0), &stored).unwrap_err().to_string();
        for part in
            ["cache: ", "13 MB free of 60 MB", "1,000 keys of others", "allkeys-lru", "--allow-eviction"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        // Without keys of others no reserve is needed.
        let alone = StoreMemory { keys: 1, ..memory(13_000_000, 0) };
        assert!(fits("cache", &alone, &stored).is_ok());
        assert!(fits("cache", &StoreMemory { free: 11_000_000, ..alone }, &stored).is_err());
    }
}
