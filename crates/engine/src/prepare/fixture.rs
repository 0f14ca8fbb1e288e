//! A target's fixture: the part of its database that the run uses, opened, leased and cleaned up, and the state of
//! its data.

use crate::plan::Plan;
use crate::prepare::target::Target;
use kurabe_core::collection::{Collection, Field, FieldType, NAMESPACE_PREFIX};
use kurabe_core::driver::{Access, ConnectOptions, Driver, Namespace, Session, Support};
use kurabe_core::experiment::{Before, DatasetState};
use kurabe_core::interceptor::{InterceptedSession, Interceptor};
use kurabe_core::planned::PlannedCell;
use kurabe_core::{Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the cells of a target need there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ownership {
    /// Nothing: they read tables that are there.
    Nothing,
    /// The lease: they change tables that are there.
    Lease,
    /// Tables of their own.
    Tables,
}

impl Ownership {
    /// Opens a session that loads and checks.
    fn session(self, driver: &dyn Driver) -> Result<Box<dyn Session>> {
        let reads = self == Self::Nothing && driver.capabilities().read_only_sessions == Support::Native;
        let access = if reads { Access::ReadOnly } else { Access::ReadWrite };
        driver.connect(&ConnectOptions { access, ..ConnectOptions::default() })
    }
}

/// A leased namespace, and a session that loads, clears and checks, separate from the clients. Dropping it removes
/// what the run created there, if the server can still be reached.
pub struct Fixture {
    /// Creates and removes collections.
    pub(crate) namespace: Box<dyn Namespace>,
    /// Loads and checks. `None` only while the fixture is dropped.
    session: Option<Box<dyn Session>>,
    namespace_number: usize,
    need: Ownership,
    /// The loaded datasets, by name.
    datasets: HashMap<String, DatasetState>,
    /// Datasets and operations that trials were prepared for.
    prepared: HashSet<(String, String)>,
    /// The time of loading since [`take_loading`](Self::take_loading).
    loading: Duration,
    /// Trials made on this data so far.
    trials: u64,
}

impl Fixture {
    /// Opens a target's namespace, acquires its lease for the run, and removes what an earlier crashed run left
    /// there.
    ///
    /// # Errors
    /// If the target cannot be reached, or another run holds the lease.
    pub fn open(target: &Target, slot: usize, slots: usize, run: &str) -> Result<Self> {
        Self::for_need(target, slot, slots, run, Ownership::Tables)
    }

    /// Opens a fixture, as far as the cells need it.
    pub(crate) fn for_need(
        target: &Target,
        slot: usize,
        slots: usize,
        run: &str,
        need: Ownership,
    ) -> Result<Self> {
        let mut namespace = target.driver.namespace()?;
        if target.claims && need != Ownership::Nothing {
            namespace.claim(run)?;
        }
        // Other targets of this run may be on the same server; their slots are kept.
        let old = |of: Option<usize>| target.claims && of.is_none_or(|of| of >= slots);
        Self::within(namespace, &*target.driver, slot, need, old)
    }

    /// Opens the fixture of a target's A/A control: on the second instance of its server, or beside the first
    /// fixture, which holds the lease.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) fn of_aa_control(target: &Target, slot: usize, run: &str, need: Ownership) -> Result<Self> {
        let driver = target.second.as_ref().map_or(&target.driver, |second| &second.driver);
        let mut namespace = driver.namespace()?;
        if target.second.is_some() && need != Ownership::Nothing {
            namespace.claim(run)?;
        }
        Self::within(namespace, &**driver, slot, need, |_| false)
    }

    /// `old`: whether a collection with this slot was left by an earlier run.
    fn within(
        namespace: Box<dyn Namespace>,
        driver: &dyn Driver,
        slot: usize,
        need: Ownership,
        old: impl Fn(Option<usize>) -> bool,
    ) -> Result<Self> {
        let session = Some(need.session(driver)?);
        let mut fixture = Self {
            namespace,
            session,
            namespace_number: slot,
            need,
            datasets: HashMap::new(),
            prepared: HashSet::new(),
            loading: Duration::ZERO,
            trials: 0,
        };
        if need != Ownership::Tables {
            return Ok(fixture);
        }
        // Missing permissions should show up now, not after an hour.
        let probe = Collection::new(
            format!("{NAMESPACE_PREFIX}{slot}_probe"),
            vec![Field { name: "id", kind: FieldType::Int }],
            vec![0],
        );
        fixture.namespace.create(&probe)?;
        fixture.namespace.remove(&probe.name)?;
        fixture.remove(|of| of == Some(slot) || old(of))?;
        Ok(fixture)
    }

    /// What creates collections, and what loads and checks their data.
    ///
    /// # Errors
    /// None while the fixture is open.
    pub fn connections(&mut self) -> Result<(&mut dyn Namespace, &mut (dyn Session + 'static))> {
        Ok((&mut *self.namespace, self.session.as_deref_mut().ok_or_else(not_loaded)?))
    }

    /// Whether the data of a cell has been loaded.
    pub(crate) fn has(&self, cell: &PlannedCell) -> bool {
        self.datasets.contains_key(&cell.dataset)
    }

    /// Loads the data of a cell.
    ///
    /// # Errors
    /// As for [`Workload::load`](kurabe_core::experiment::Workload::load); [`Interrupted`](ErrorKind::Interrupted) once
    /// `cancel` is set.
    pub fn load(
        &mut self,
        cell: &PlannedCell,
        cancel: &AtomicBool,
        load: impl FnOnce(&mut dyn Namespace, &mut dyn Session) -> Result<DatasetState>,
    ) -> Result<()> {
        let began = Instant::now();
        let session = self.session.as_deref_mut().ok_or_else(not_loaded)?;
        let state = load(&mut *self.namespace, &mut cancellable(session, cancel))?;
        self.loading += began.elapsed();
        self.datasets.insert(cell.dataset.clone(), state);
        Ok(())
    }

    /// The time of loading since the last call.
    pub(crate) fn take_loading(&mut self) -> Duration {
        std::mem::take(&mut self.loading)
    }

    /// Prepares a trial on the data of a cell. The first of an operation loads what only that needs.
    pub fn before(
        &mut self,
        cell: &PlannedCell,
        operation: &str,
        cancel: &AtomicBool,
        before: impl FnOnce(Before<'_>) -> Result<()>,
    ) -> Result<()> {
        let began = Instant::now();
        let state = self.datasets.get_mut(&cell.dataset).ok_or_else(not_loaded)?;
        let session = self.session.as_deref_mut().ok_or_else(not_loaded)?;
        let (namespace, mut cancellable) = (&mut *self.namespace, cancellable(session, cancel));
        before(Before { operation, state, namespace, session: &mut cancellable })?;
        drop(cancellable);
        session.flush_stats()?;
        if self.prepared.insert((cell.dataset.clone(), operation.to_owned())) {
            self.loading += began.elapsed();
        }
        Ok(())
    }

    /// The state of a cell's data.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if it is not loaded.
    pub(crate) fn state(&self, cell: &PlannedCell) -> Result<&DatasetState> {
        self.datasets.get(&cell.dataset).ok_or_else(not_loaded)
    }

    /// The state of a cell's data, and the session that checks it.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if it is not loaded.
    pub fn lend(&mut self, cell: &PlannedCell) -> Result<(&DatasetState, &mut (dyn Session + 'static))> {
        let state = self.datasets.get(&cell.dataset).ok_or_else(not_loaded)?;
        Ok((state, self.session.as_deref_mut().ok_or_else(not_loaded)?))
    }

    /// The number of the next trial on this data, from 1.
    pub(crate) fn next_trial(&mut self) -> u64 {
        self.trials += 1;
        self.trials
    }

    /// Opens the namespaces of all targets with measurable cells.
    pub fn open_all(plan: &Plan, targets: &[Target], run: &str) -> Result<Vec<Option<Self>>> {
        let open = |(slot, target): (usize, &Target)| {
            if target.skip_reason.is_some() {
                return Ok(None);
            }
            Self::for_need(target, slot, targets.len(), run, plan.need(slot))
                .map(Some)
                .map_err(|error| error.context(&target.name))
        };
        targets.iter().enumerate().map(open).collect()
    }

    fn remove(&mut self, which: impl Fn(Option<usize>) -> bool) -> Result<usize> {
        let names = self.namespace.list()?;
        let mut kept = 0;
        for name in names {
            // The slot in a collection's name: `kurabe_<slot>_…`.
            let slot =
                name.strip_prefix(NAMESPACE_PREFIX).and_then(|rest| rest.split('_').next()?.parse().ok());
            if which(slot) {
                self.namespace.remove(&name)?;
            } else {
                kept += 1;
            }
        }
        Ok(kept)
    }

    /// Removes everything that the run created here.
    pub fn clean_up(&mut self) -> Result<()> {
        self.datasets.clear();
        self.prepared.clear();
        if self.need != Ownership::Tables {
            return Ok(());
        }
        let slot = self.namespace_number;
        if self.remove(|of| of == Some(slot))? == 0 { self.namespace.finish() } else { Ok(()) }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // After a failed load the session's transaction may still be open, and its locks would hold up the removal.
        self.session = None;
        // Errors are ignored: the next run on this namespace removes the rest.
        let _ = self.clean_up();
    }
}

fn not_loaded() -> Error {
    Error::new(ErrorKind::Internal, "the data of a cell has not been loaded")
}

/// A session whose requests fail with [`Interrupted`](ErrorKind::Interrupted) once `cancel` is set: it ends the tool's own work on a
/// session, such as loading data, when the user stops the run. On a slow server that work may take longer than all trials.
pub fn cancellable<'a>(
    session: &'a mut (dyn Session + 'static),
    cancel: &'a AtomicBool,
) -> impl Session + 'a {
    InterceptedSession::new(session, Cancellable(cancel))
}

struct Cancellable<'a>(&'a AtomicBool);

impl Interceptor for Cancellable<'_> {
    fn before_request(&mut self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(())
    }
}
