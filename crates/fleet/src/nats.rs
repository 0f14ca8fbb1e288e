//! NATS for blocking code: one thread runs the client of the crate `async-nats`; others send and receive through channels.
//!
//! A connection that is lost is made again, for as long as this lives. What was being sent meanwhile waits in a queue;
//! what was in flight may be lost ([`crate::delivery`]).

use futures_util::StreamExt;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The subject of calls to all agents, …
pub(crate) const CALL: &str = "kurabe.fleet.call";
/// … and the beginning of that of one agent.
const AGENT: &str = "kurabe.fleet.agent";
/// The variable with the path of a file of NATS credentials (`nsc generate creds`).
pub(crate) const CREDENTIALS: &str = "KURABE_NATS_CREDENTIALS";
/// The variable with the path of the certificates of authorities, beside the system's.
pub(crate) const CERTIFICATES: &str = "KURABE_NATS_CA";

/// The time limit of the first connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to connect again: shorter than the silence that ends a trial.
const PAUSE: Duration = Duration::from_millis(250);
/// How often the client checks that the broker answers.
const PING: Duration = Duration::from_secs(2);

pub(crate) fn subject_of(agent: &str) -> String {
    format!("{AGENT}.{agent}")
}

/// A message that was received.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) at: Instant,
    pub(crate) subject: String,
    pub(crate) reply: Option<String>,
    pub(crate) payload: Vec<u8>,
}

enum Request {
    Subscribe(String, mpsc::Sender<Received>, oneshot::Sender<()>),
    Publish { subject: String, reply: Option<String>, payload: Vec<u8> },
}

/// A connection to a broker. It is closed when this is dropped, after everything was sent.
#[derive(Debug)]
pub(crate) struct Bus {
    requests: Option<UnboundedSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What sends on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Publisher(UnboundedSender<Request>);

impl Publisher {
    /// Sends a message, at some later time if the broker is not reached.
    pub(crate) fn publish(&self, subject: &str, reply: Option<&str>, payload: Vec<u8>) {
        let (subject, reply) = (subject.to_owned(), reply.map(str::to_owned));
        // Fails only when the connection is being closed.
        let _ = self.0.send(Request::Publish { subject, reply, payload });
    }
}

impl Bus {
    /// Connects to the broker at this URL, which may have a password. `name` is shown in the broker's list.
    ///
    /// # Errors
    /// If it does not answer, or refuses the connection.
    pub(crate) fn connect(url: &str, shown: &str, name: &str) -> Result<Self> {
        let (to, requests) = unbounded_channel();
        let (connected, result) = mpsc::sync_channel(1);
        let (url, shown, name) = (url.to_owned(), shown.to_owned(), name.to_owned());
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(serve(&url, &shown, &name, requests, connected)),
                Err(error) => {
                    let error =
                        Error::of_cause(ErrorKind::Environment, "no runtime for NATS can be made", error);
                    let _ = connected.send(Err(error));
                }
            }
        };
        let thread = thread::Builder::new().name("nats".to_owned()).spawn(run);
        let thread = thread.map_err(|why| Error::no_thread("NATS", why))?;
        let ended = || Err(Error::new(ErrorKind::Internal, "the thread of NATS ended"));
        result.recv().unwrap_or_else(|_| ended())?;
        Ok(Self { requests: Some(to), thread: Some(thread) })
    }

    /// What sends.
    ///
    /// # Errors
    /// None while the connection is open.
    pub(crate) fn publisher(&self) -> Result<Publisher> {
        let requests = self.requests.clone();
        requests
            .map(Publisher)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the connection to NATS is closed"))
    }

    /// Receives the messages of a subject from now on.
    ///
    /// # Errors
    /// If the connection is closed.
    pub(crate) fn subscribe(&self, subject: &str, to: mpsc::Sender<Received>) -> Result<()> {
        let (done, wait) = oneshot::channel();
        let sent = self.publisher()?.0.send(Request::Subscribe(subject.to_owned(), to, done));
        let closed = || Error::new(ErrorKind::ConnectionLost, format!("NATS did not subscribe to {subject}"));
        sent.map_err(|_| closed())?;
        wait.blocking_recv().map_err(|_| closed())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(
    url: &str,
    shown: &str,
    name: &str,
    mut requests: UnboundedReceiver<Request>,
    connected: mpsc::SyncSender<Result<()>>,
) {
    let client = match connect(url, name).await {
        Ok(client) => client,
        Err(why) => {
            let error = Error::new(ErrorKind::Unreachable, format!("{shown}: {why}"));
            let hint = "check that nats-server runs there, and the user and password of the URL";
            let _ = connected.send(Err(error.hint(hint)));
            return;
        }
    };
    let _ = connected.send(Ok(()));
    while let Some(request) = requests.recv().await {
        match request {
            Request::Publish { subject, reply, payload } => {
                // A closed client: nothing will ever be sent again, and the other side notices the silence.
                let _ = match reply {
                    Some(reply) => client.publish_with_reply(subject, reply, payload.into()).await,
                    None => client.publish(subject, payload.into()).await,
                };
            }
            Request::Subscribe(subject, to, done) => {
                let Ok(mut messages) = client.subscribe(subject).await else { continue };
                // What is published after this arrives.
                let _ = client.flush().await;
                tokio::spawn(async move {
                    while let Some(message) = messages.next().await {
                        // Of the broker itself: nobody has subscribed to what was published, as after its restart.
                        if message.status.is_some() {
                            continue;
                        }
                        let received = Received {
                            at: Instant::now(),
                            subject: message.subject.to_string(),
                            reply: message.reply.map(|reply| reply.to_string()),
                            payload: message.payload.to_vec(),
                        };
                        if to.send(received).is_err() {
                            return;
                        }
                    }
                });
                let _ = done.send(());
            }
        }
    }
    // A broker that does not answer must not hold up the end of the program.
    let _ = tokio::time::timeout(Duration::from_secs(1), client.flush()).await;
}

async fn connect(url: &str, name: &str) -> Result<async_nats::Client, String> {
    // Other crates of the program enable a second provider, so that none is the default.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut options = async_nats::ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT)
        .ping_interval(PING)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempt| PAUSE.min(Duration::from_millis(10) * attempt as u32));
    if let Some(file) = variable(CREDENTIALS) {
        let read = options.credentials_file(&file).await;
        options = read.map_err(|error| format!("the credentials in {file} cannot be read: {error}"))?;
    }
    if let Some(file) = variable(CERTIFICATES) {
        options = options.add_root_certificates(file.into());
    }
    let mut address = TargetUrl::parse(url).map_err(|error| error.to_string())?;
    // The client does not read them from the URL.
    options = match (address.user.take(), address.password.take()) {
        (Some(user), Some(password)) => options.user_and_password(user, password.expose().to_owned()),
        // As for NATS's own programs, one word before the host is a token.
        (Some(token), None) => options.token(token),
        (None, _) => options,
    };
    let connecting = tokio::time::timeout(CONNECT, options.connect(address.to_string()));
    match connecting.await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it did not answer in time".to_owned()),
    }
}
