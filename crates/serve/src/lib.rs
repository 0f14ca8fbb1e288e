//! `kurabe serve`: a web page of this machine's runs.
//!
//! | module | answers |
//! |---|---|
//! | `http`, `call`, `answer` | which page a request is for, with what; answers |
//! | `access` | who may use the page |
//! | `runs`, `verdicts` | the list of runs, and one run with its report |
//! | `live` | running trials, as server-sent events |
//! | `trials` | what a page shows of trials: figures, charts, a log |
//! | `compare` | two or more runs |
//! | `history` | a suite over time |
//! | `form` | a new run, from the registry of experiments |
//! | `follow` | run files, read as they grow |
//! | `jobs`, `job` | the processes of runs that were started here, and the page of one |
//! | `shared` | what all pages share |
//! | `metrics` | the newest results, for Prometheus |
//!
//! A run is a process of its own, which writes its run file. The page reads that file, so it also shows runs that were
//! started elsewhere, and it can be restarted while they work.

mod access;
mod answer;
mod call;
mod compare;
mod failure;
mod follow;
mod form;
mod history;
mod http;
mod job;
mod jobs;
mod live;
mod metrics;
mod page;
mod runs;
mod shared;
mod trials;
mod verdicts;

use access::Access;
use follow::Followed;
use jobs::Jobs;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_record::{Store, Trusted};
use kurabe_report::Language;
use shared::Shared;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use verdicts::Verdicts;

/// How the user of the page allows it more.
const ALLOW: &str = "start the page with the target: kurabe serve TARGET…, or with --allow-any-target; or start the run itself by \
                     kurabe run";

/// The settings of the page.
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What a user must know; `None`: everybody who reaches the address may do everything.
    pub token: Option<String>,
    /// The program that makes runs.
    pub program: PathBuf,
    /// The targets that forms, and runs that are resumed, may name, such as `up:postgres`.
    pub targets: Vec<String>,
    /// Whether they may name anything.
    pub any_target: bool,
    /// Names by which the page is reached, besides its address.
    pub hosts: Vec<String>,
    /// The language of reports and verdicts; `None`: each browser's.
    pub language: Option<Language>,
}

/// The page, listening.
pub struct Page {
    listener: std::net::TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A token of 128 random bits.
///
/// # Errors
/// [`Environment`](ErrorKind::Environment) if the system gives no random numbers.
pub fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Environment, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

impl Page {
    /// Listens, for the runs of a store.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if the address cannot be used, or the store not be written.
    pub fn open(options: Options, store: Store) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Environment, format!("cannot listen at {}: {error}", options.listen))
                .hint("name an address of this host and a free port: --listen 127.0.0.1:0")
        };
        let listener = std::net::TcpListener::bind(options.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let store_dir = store.dir().to_owned();
        let shared = Shared {
            jobs: Jobs::open(&store, options.program)?,
            store,
            access: Access::new(options.token, &random_token()?, address, &options.hosts),
            trusted: Trusted::new(options.targets, store_dir, options.any_target, ALLOW),
            followed: Followed::default(),
            verdicts: Verdicts::default(),
            language: options.language,
            stop: Arc::default(),
        };
        Ok(Self { listener, address, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the page, with the token.
    pub fn url(&self) -> String {
        match self.shared.access.token() {
            Some(token) => format!("http://{}/?token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// Answers requests until `stop` is set. Runs that were started from the page go on.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if the system has no means to wait for requests.
    pub fn serve(self, stop: &AtomicBool) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::new(ErrorKind::Environment, format!("the page ended: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let shared = Arc::clone(&self.shared);
        let ended = runtime.block_on(async move {
            let listener = TcpListener::from_std(self.listener)?;
            tokio::select! {
                never = http::serve(listener, self.shared) => match never {},
                () = stopped(stop) => Ok(()),
            }
        });
        shared.stop.store(true, Ordering::SeqCst);
        // A report that is being made does not delay the end.
        runtime.shutdown_background();
        ended.map_err(failed)
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
