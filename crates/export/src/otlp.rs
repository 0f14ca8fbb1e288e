//! Sends a run to a collector of OpenTelemetry: OTLP over HTTP, in binary Protobuf
//! (<https://opentelemetry.io/docs/specs/otlp/>). It is sent after the run, so that nothing of it is measured.

use crate::otlp_messages as messages;
pub use crate::parent::Parent;
use kurabe_core::run::Run;
use kurabe_core::{Error, ErrorKind, Result};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;
use std::time::Duration;
use ureq::Agent;

/// The maximum number of spans in a request: collectors limit the size of one.
const SPANS: usize = 1_000;
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer that is read, in bytes.
const ANSWER: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// The URL without `/v1/traces`.
    url: String,
    /// Further fields of each request, such as an authorisation.
    headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Spans: one of the run, of each round and of each trial.
    pub spans: usize,
    /// Trials that metrics were sent of.
    pub trials: usize,
}

impl Collector {
    /// A collector at a URL such as `http://localhost:4318`. `headers` are `name=value` pairs separated by commas, with
    /// values as in URLs (the syntax of the variable `OTEL_EXPORTER_OTLP_HEADERS`).
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) if it is no URL of HTTP, or a header is no pair.
    pub fn new(url: &str, headers: &str) -> Result<Self> {
        let place = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if place
            .is_none_or(|place| place.is_empty() || place.starts_with('/') || place.contains(['?', '#', ' ']))
        {
            return Err(Error::usage(format!("'{url}' is not the URL of an OpenTelemetry collector"))
                .hint("write http://HOST:4318"));
        }
        let pairs = headers.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let headers = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                // The value may be a secret: it is not shown.
                Error::usage("OTEL_EXPORTER_OTLP_HEADERS has a header without '='")
                    .hint("write name=value pairs, separated by commas")
            })?;
            Ok((name.trim().to_owned(), decoded(value.trim())))
        });
        Ok(Self { url: url.trim_end_matches('/').to_owned(), headers: headers.collect::<Result<_>>()? })
    }

    /// Sends the spans and metrics of a run; as the child of `parent`, if there is one.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if the collector cannot be reached or refuses something.
    pub fn send(&self, run: &Run, parent: Option<Parent>) -> Result<Sent> {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("kurabe/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        let (resource, scope) = (Some(messages::resource(run)), Some(messages::scope()));
        let spans = messages::spans(run, parent);
        for part in spans.chunks(SPANS) {
            let scope_spans =
                vec![ScopeSpans { scope: scope.clone(), spans: part.to_vec(), ..ScopeSpans::default() }];
            let of_resource =
                ResourceSpans { resource: resource.clone(), scope_spans, ..ResourceSpans::default() };
            let request = ExportTraceServiceRequest { resource_spans: vec![of_resource] };
            let answer = self.post(&agent, "/v1/traces", &request.encode_to_vec())?;
            let partial =
                ExportTraceServiceResponse::decode(&*answer).ok().and_then(|answer| answer.partial_success);
            if let Some(partial) = partial.filter(|partial| partial.rejected_spans > 0) {
                return Err(
                    self.refused(&format!("{} spans", partial.rejected_spans), &partial.error_message)
                );
            }
        }
        let metrics = messages::metrics(run);
        let scope_metrics = vec![ScopeMetrics { scope, metrics, ..ScopeMetrics::default() }];
        let of_resource = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
        let request = ExportMetricsServiceRequest { resource_metrics: vec![of_resource] };
        let answer = self.post(&agent, "/v1/metrics", &request.encode_to_vec())?;
        let partial =
            ExportMetricsServiceResponse::decode(&*answer).ok().and_then(|answer| answer.partial_success);
        if let Some(partial) = partial.filter(|partial| partial.rejected_data_points > 0) {
            let count = partial.rejected_data_points;
            return Err(self.refused(&format!("{count} values of metrics"), &partial.error_message));
        }
        Ok(Sent { spans: spans.len(), trials: run.figures().count() })
    }

    fn post(&self, agent: &Agent, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        let failed = |error: ureq::Error| {
            Error::new(ErrorKind::Environment, format!("nothing was sent to {}{path}: {error}", self.shown()))
                .hint("check that an OpenTelemetry collector receives OTLP over HTTP there")
        };
        let mut request = agent.post(format!("{}{path}", self.url)).content_type("application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = request.send(body).map_err(failed)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec().unwrap_or_default();
        if !status.is_success() {
            return Err(self.refused(path, &format!("HTTP status {}", status.as_u16())));
        }
        Ok(body)
    }

    fn refused(&self, what: &str, why: &str) -> Error {
        let why = if why.is_empty() { "it gave no reason" } else { why };
        Error::new(ErrorKind::Environment, format!("the collector at {} refused {what}: {why}", self.shown()))
    }

    /// The URL without a user and password.
    fn shown(&self) -> String {
        kurabe_core::target::without_passwords(std::iter::once(self.url.clone())).concat()
    }
}

/// Text of a header with `%XX` decoded.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_http_are_collectors() {
        for url in ["http://localhost:4318", "https://a.example/otlp/", "http://[::1]:4318"] {
            assert!(Collector::new(url, "").is_ok(), "{url}");
        }
        for url in
            ["", "localhost:4318", "http://", "http:///x", "grpc://a:4317", "http://a b", "http://a?x=1"]
        {
            assert_eq!(Collector::new(url, "").unwrap_err().kind(), ErrorKind::Usage, "{url}");
        }
    }

    #[test]
    fn headers_are_pairs_whose_values_are_decoded_and_never_shown() {
        let collector = Collector::new("http://a", "authorization=Basic%20c2Vj, x=1%").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(collector.headers, [pair("authorization", "Basic c2Vj"), pair("x", "1%")]);
        let error = Collector::new("http://a", "sesame").unwrap_err();
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}
