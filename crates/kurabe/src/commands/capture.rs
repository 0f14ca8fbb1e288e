//! `kurabe capture`: records what passes between an application and its server, and shows it.

mod catalogue;
mod page;

use super::files::write_private;
use super::terminate::Terminated;
use super::wire::{self, RelayOptions, Relayed, Strangers};
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::{places, signals, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_capture::file::{About, Known};
use kurabe_capture::recorder::Recorder;
use kurabe_capture::{Input, Totals, Values, log, model, trace};
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};
use kurabe_core::target::TargetUrl;
use kurabe_core::units::{count, counted};
use kurabe_core::{Error, ErrorKind};
use kurabe_os::private;
use kurabe_wire::environment::{environment, through};
use kurabe_wire::registry;
use kurabe_wire::relay::Server;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// The pause between two looks at the recorder.
const POLL: Duration = Duration::from_millis(20);

options! {
    /// The options of `kurabe capture` besides those of its relay, and of `show` and `model`.
    CaptureOptions {
        output: Option<PathBuf>,
        from: Option<PathBuf>,
        values: Option<String>,
        /// A capture that is there.
        file: Option<PathBuf>,
        report: Option<String>,
        export_html: Option<PathBuf>,
        made: bool,
    }
}

/// Shows a capture, makes a model of one, or records one.
pub(super) fn capture(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    match matches.subcommand() {
        Some(("show", matches)) => show(&CaptureOptions::of(matches), output),
        Some((_, matches)) => write_model(&CaptureOptions::of(matches), output),
        None => make(&RelayOptions::of(matches), &CaptureOptions::of(matches), output),
    }
}

fn make(relay: &RelayOptions, options: &CaptureOptions, output: &Output) -> Result<Exit> {
    let Some(path) = &options.output else { return Ok(exit::DONE) };
    if path.exists() {
        return Err(Error::usage(format!("{} exists already", path.display()))
            .hint("name another file, or remove it: a capture is never overwritten")
            .into());
    }
    if let Some(from) = &options.from {
        return traced(relay, options, from, path, output);
    }
    let ends_tls = relay.tls.as_deref() == Some("terminate");
    let plain = (!ends_tls).then_some("--tls terminate ends TLS at the relay");
    let relayed = Relayed::prepare(relay, plain, output)?;
    let done = record(options, &relayed, ends_tls, path, output);
    relayed.end(output);
    done
}

/// What a capture is of, from now on.
fn about(options: &CaptureOptions, url: &TargetUrl) -> About {
    let began = time::since_1970();
    About {
        protocol: registry::plain_scheme(&url.scheme).unwrap_or(&url.scheme).to_owned(),
        target: url.to_string(),
        values: match options.values.as_deref() {
            Some("hash") => Values::Hash,
            Some("drop") => Values::Drop,
            _ => Values::Keep,
        },
        known: Known::default(),
        began_ms: began.as_millis() as u64,
        session: None,
        tells_nil_lists: true,
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        has_old_checksums: false,
    }
}

/// Reads packets, or a log, in place of relaying.
fn traced(
    relay: &RelayOptions,
    options: &CaptureOptions,
    from: &Path,
    path: &Path,
    output: &Output,
) -> Result<Exit> {
    let url = TargetUrl::parse(relay.target.as_deref().unwrap_or_default())?;
    if url.scheme == kurabe_targets::UP {
        return Err(Error::usage("--from reads packets, or the log, of a server that there was")
            .hint("name its protocol and port, such as postgres://10.0.0.5:5432, or of a log its database, such as postgres://localhost/shop")
            .into());
    }
    let protocol = wire::protocol(&url.scheme)?;
    let mut about = about(options, &url);
    let mut input = Input::open(from)?;
    if !trace::has_packets(&mut input)? && log::LOGS.contains(&url.scheme.as_str()) {
        let database = Some(url.path.as_str()).filter(|name| !name.is_empty());
        let (totals, missing) = log::record(input, database, protocol, path, &mut about)?;
        for what in &missing {
            output.warning(&format!("{}: {what}", from.display()));
        }
        recorded(&totals, 0, path, output)?;
        return Ok(exit::DONE);
    }
    let Server::Tcp(host, port) = wire::server(&url)?.server else {
        return Err(url
            .wrong("a trace has packets of TCP, and none of a Unix socket")
            .hint("name a host")
            .into());
    };
    let names_host =
        url.host.is_some() || ["host", "hostaddr"].into_iter().any(|name| url.option(name).is_some());
    let address = host.parse().ok().filter(|_| names_host);
    let (totals, why) = trace::record(input, (address, port), protocol, path, &mut about)?;
    if let Some(why) = why {
        output.warning(&why);
    }
    recorded(&totals, 0, path, output)?;
    Ok(exit::DONE)
}

/// Says what was recorded, and how many connections of other accounts were refused.
fn recorded(totals: &Totals, refused: u64, path: &Path, output: &Output) -> Result<()> {
    for why in &totals.unreadable {
        output.warning(&format!("connections, or their rest, were not recorded: {why}"));
    }
    output.result(&format!(
        "{}: {} of {}{}",
        path.display(),
        counted(totals.requests, "request"),
        counted(totals.connections, "connection"),
        kurabe_wire::render::refused(refused)
    ))?;
    if totals.cut > 0 {
        output.note(&kurabe_capture::show::left_out(totals.cut, totals.requests));
    }
    if let Some(why) = &totals.columns_unknown {
        output.note(&format!(
            "{} has rows that were written without a list of columns, and these are not known ({why}): a secret in them is left out \
             only if the table's name, or another statement, speaks for one",
            path.display()
        ));
    }
    if totals.suspect > 0 {
        output.note(&format!(
            "{} has {} requests with values that look like keys or tokens, which nothing beside them says: they are recorded; \
             --values hash replaces them",
            path.display(),
            count(totals.suspect)
        ));
    }
    output.hint(&format!("kurabe capture show {}", path.display()));
    Ok(())
}

/// Records until the command has ended, or until Ctrl-C without one.
fn record(
    options: &CaptureOptions,
    relayed: &Relayed,
    ends_tls: bool,
    path: &Path,
    output: &Output,
) -> Result<Exit> {
    let Relayed { url, protocol, listen, command, stop, .. } = relayed;
    let far = wire::server(url)?;
    let terminated = ends_tls.then(|| Terminated::prepare(relayed, &far)).transpose()?;
    let server = far.server;
    wire::check(&server)?;
    let mut about = about(options, url);
    let ending = terminated.as_ref().map(|terminated| terminated.ending(relayed, output));
    let catalogue::Found { catalogue, settings_unknown } = catalogue::read(url, &mut about);
    if let Some(why) = settings_unknown {
        output.note(&format!(
            "the settings of the server's new sessions are not known ({why}): a replay sends the statements under the settings of its target"
        ));
    }
    let recorder = Recorder::start(listen, server, protocol, path, &about, ending, catalogue)?;
    let (at, mut strangers) = (recorder.at(), Strangers::default());
    if let Some(terminated) = &terminated {
        terminated.note(relayed, output);
    }
    let mut is_told = false;
    let mut watch = || {
        strangers.tell(recorder.refused(), output);
        if recorder.has_failed() && !std::mem::replace(&mut is_told, true) {
            output.warning(&format!(
                "{} cannot be written any more: nothing more is recorded, and connections are relayed as before",
                path.display()
            ));
        }
    };
    let status = if command.is_empty() {
        let shown = terminated.as_ref().map_or_else(|| through(url, at), |one| one.through(relayed, at));
        output.result(&relayed.for_clients(shown))?;
        output.note("Ctrl-C ends the capture");
        signals::wait_for("connections to be closed");
        while !stop.load(Ordering::SeqCst) {
            thread::sleep(POLL);
            watch();
        }
        None
    } else {
        signals::wait_for("the command to end");
        let plain = || environment(url, at, &protocol.variables, None);
        let set = terminated.as_ref().map_or_else(plain, |one| one.environment(relayed, at));
        Some(wire::run(command, &set, stop, watch)?)
    };
    strangers.end(recorder.refused(), output);
    let refused = recorder.refused().others();
    let totals = recorder.finish(path)?;
    recorded(&totals, refused, path, output)?;
    if let Some(error) = terminated.and_then(|terminated| terminated.refused())
        && status.is_some()
        && !stop.load(Ordering::SeqCst)
    {
        return Err(error.into());
    }
    wire::ended(status, totals.connections, totals.unreachable, stop, output)
}

/// Shows a capture.
fn show(options: &CaptureOptions, output: &Output) -> Result<Exit> {
    let Some(path) = &options.file else { return Ok(exit::DONE) };
    places::warn_of_file(path, output);
    let shown = kurabe_capture::show::show(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(to) = &options.export_html {
        write_private(to, page::page(&shown, &name).as_bytes())?;
    }
    if options.report.as_deref() == Some("json") {
        output.json_result(serde_json::to_string_pretty(&shown))?;
    } else {
        output.result(&shown.text(&name))?;
    }
    Ok(exit::DONE)
}

/// Writes a custom workload that does what was recorded.
fn write_model(options: &CaptureOptions, output: &Output) -> Result<Exit> {
    let (Some(capture), Some(path)) = (&options.file, &options.output) else { return Ok(exit::DONE) };
    places::warn_of_file(capture, output);
    let model::Model { text, notes } = model::model(capture, options.made)?;
    let shown = path.display();
    let mut file = private::create_new(path).map_err(|error| {
        let hint = "name a file that does not exist, in a folder that is there";
        Error::new(ErrorKind::Environment, format!("cannot write {shown}: {error}")).hint(hint)
    })?;
    file.write_all(text.as_bytes())
        .map_err(|error| Error::new(ErrorKind::Environment, format!("cannot write {shown}: {error}")))?;
    // What it says is read as any other workload's, before somebody runs it.
    let name = path.to_string_lossy().into_owned();
    let files = vec![CustomFile { name, text, weight: 1 }];
    let custom = CustomWorkload::new(Language::Toml, files, BTreeMap::new(), false);
    let experiment = kurabe_experiments::custom::experiment(&custom).map_err(|error| {
        error.context("the model cannot be run as it is").hint("correct the file by hand, and report this")
    })?;
    let operations = experiment.info.operations;
    let kinds = operations.first().map_or("", |operation| operation.about);
    output.result(&format!("{shown}: {kinds}"))?;
    for note in &notes {
        output.result(note)?;
    }
    let target =
        if options.made { "TARGET…" } else { "TARGET… (which has these tables; or up:… with --setup)" };
    output.hint(&format!("kurabe run -f {shown} {target}"));
    Ok(exit::DONE)
}
