//! `--otlp` and `kurabe runs push`: runs for a collector of OpenTelemetry. `left_out` stands in for it.

use crate::exit::{self, Exit, OfRunFile};
use crate::output::Output;
use crate::places;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::run::Run;
pub(super) use kurabe_export::otlp::Collector;
use kurabe_export::otlp::{Parent, Sent};

/// The variable of further fields of requests, as OpenTelemetry's own programs read it.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// The variable of the span that this program was started in (W3C Trace Context, as OpenTelemetry's specification
/// carries it in the environment).
const PARENT: &str = "TRACEPARENT";

/// The collector that an option names, if it was given.
pub(super) fn collector(matches: &ArgMatches) -> kurabe_core::Result<Option<Collector>> {
    let url = matches.get_one::<String>("otlp").filter(|url| !url.is_empty());
    let headers = std::env::var(HEADERS).unwrap_or_default();
    url.map(|url| Collector::new(url, &headers)).transpose()
}

/// Sends a run that has ended. The run is recorded: a collector that cannot be reached is no failure of it.
pub(super) fn after(collector: Option<&Collector>, run: &Run, output: &Output) {
    let Some(collector) = collector else { return };
    match collector.send(run, parent()) {
        Ok(sent) => output.note(&summary(&sent)),
        Err(error) => {
            output.warning(&format!("{error}; 'kurabe runs push {}' sends it again", run.header.run));
        }
    }
}

/// `kurabe runs push`.
pub(super) fn push(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let store = places::runs(matches)?;
    let collector = collector(matches)?
        .ok_or_else(|| kurabe_core::Error::usage("--otlp names the collector: http://HOST:4318"))?;
    for name in matches.get_many::<String>("run").into_iter().flatten() {
        let path = store.find(name).map_err(OfRunFile)?;
        let run = kurabe_record::read(&path).map_err(OfRunFile)?.run;
        let sent = collector.send(&run, parent())?;
        output.note(&format!("{}: {}", path.name, summary(&sent)));
    }
    Ok(exit::DONE)
}

fn parent() -> Option<Parent> {
    Parent::parse(&std::env::var(PARENT).ok()?)
}

fn summary(sent: &Sent) -> String {
    format!("sent {} spans, and metrics of {} trials", sent.spans, sent.trials)
}
