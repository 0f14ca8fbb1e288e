//! `tcp:`, no database: a listener of Kurabe's own (`kurabe up tcp`, `up:tcp`), to measure what the network alone
//! gives. Its sessions carry bytes ([`Operation::Flow`]), every one of which is compared.

mod channel;
mod session;

use crate::info::{Connections, DriverInfo};
use crate::nothing::Nothing;
use crate::prelude::*;
use crate::wire::lost;
use channel::Place;
use kurabe_core::operation::Flow;
use kurabe_core::units;
use kurabe_tcp::protocol::{Hello, LARGEST_BLOCK, PORT};
use kurabe_tcp::socket::{RECEIVE_LIMIT, SEND_LIMIT, kernel, kernel_limit, kernel_setting};
use std::sync::{Arc, OnceLock};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["tcp"],
    engine: "TCP listener",
    about: "no database: bytes to a listener of Kurabe's own, for experiment net; kurabe up tcp starts one on another host",
    url: "tcp://host[:port]",
    options: &[],
    benchmark_clause: None,
    connections: Connections::NONE,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let host = url.host.clone().ok_or_else(|| {
        Error::usage("tcp: names no host")
            .hint("up:tcp starts a listener here; 'kurabe up tcp' starts one on another host")
    })?;
    if url.user.is_some() || url.password.is_some() || !url.path.is_empty() {
        return Err(url.wrong("a listener has no users and no databases").hint("write tcp://host:port"));
    }
    if host.contains([',', '/']) {
        return Err(url.wrong("one host is needed").hint("write tcp://host:port"));
    }
    let place = Place { host, port: url.port.unwrap_or(PORT) };
    Ok(Box::new(Tcp { place: Arc::new(place), hello: OnceLock::new() }))
}

struct Tcp {
    place: Arc<Place>,
    /// What the listener reported of itself, once it was asked.
    hello: OnceLock<Hello>,
}

impl Tcp {
    /// Why a socket buffer of this size cannot be had; `None` if it can.
    fn too_large(&self, buffer: u64) -> Option<String> {
        let here = |limit| (kernel_limit(limit), limit, "this host");
        let there =
            self.hello.get().map(|hello| (hello.largest_receive, RECEIVE_LIMIT, "the listener's host"));
        let limits = [Some(here(SEND_LIMIT)), Some(here(RECEIVE_LIMIT)), there];
        limits.into_iter().flatten().find(|(most, ..)| buffer > *most).map(|(most, name, host)| {
            format!(
                "a socket buffer of {} bytes exceeds the {} bytes that the kernel of {host} allows; sysctl -w \
                 {name}={buffer} allows it",
                units::count(buffer),
                units::count(most),
            )
        })
    }
}

impl Driver for Tcp {
    fn describe(&self) -> Result<ServerFacts> {
        let session = session::TcpSession::open(&self.place, &ConnectOptions::default())?;
        let hello = session.hello().clone();
        let facts = ServerFacts {
            engine: INFO.engine.to_owned(),
            version: hello.version.clone(),
            client: format!("native, {}", kernel()),
            transport: "TCP".to_owned(),
            settings: settings(&hello, &session)?,
            notes: vec![
                "a listener is no database: its results are what the network, both kernels and the comparison of \
                 every byte allow"
                    .to_owned(),
                "streams use Nagle's algorithm, as iperf3 does by default; round trips do not".to_owned(),
            ],
            ..ServerFacts::default()
        };
        let _ = self.hello.set(hello);
        Ok(facts)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: self.place.host.clone(), port: self.place.port }
    }

    fn supports(&self, operation: &Operation) -> Support {
        match operation {
            Operation::Ping => Support::Native,
            Operation::Flow(Flow { block, socket_buffer, .. }) => {
                let long = || format!("a block has at most {} bytes", units::count(LARGEST_BLOCK));
                let long = (*block > LARGEST_BLOCK).then(long);
                Support::unless(long.or_else(|| self.too_large(*socket_buffer)))
            }
            _ => Support::no("a listener is no database: it only carries bytes, as experiment net does"),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("a listener has streams instead of pipelines");
        Capabilities::without_statements("a listener", pipelining)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(session::TcpSession::open(&self.place, options)?))
    }

    fn stats_probe(&self, _: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Err(Error::unsupported("a listener has no statistics of its own"))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(Nothing))
    }

    without!(transfers, compression, other_durability, limited_memory, links, dump_tool);
}

/// The kernels' settings that decide how fast a connection is, of both ends.
fn settings(hello: &Hello, session: &session::TcpSession) -> Result<Vec<Setting>> {
    let connected = session.connected().map_err(|error| lost(&error))?;
    let ours = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", RECEIVE_LIMIT, SEND_LIMIT]
        .map(|name| Setting::new(name, kernel_setting(name)));
    let both = [
        Setting::new("MSS", connected.segment.to_string()),
        Setting::new("congestion control", connected.congestion),
        Setting::new("listener's congestion control", hello.congestion.clone()),
        Setting::new("listener's kernel", hello.kernel.clone()),
        Setting::new(format!("listener's {RECEIVE_LIMIT}"), hello.largest_receive.to_string()),
    ];
    Ok(both.into_iter().chain(ours).filter(|setting| !setting.value.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::operation::FlowKind;

    fn error(url: &str) -> String {
        open(&TargetUrl::parse(url).unwrap()).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn url_names_one_host_and_nothing_else() {
        for url in ["tcp://a", "tcp://127.0.0.1:8080", "tcp://[::1]:81"] {
            assert_eq!(error(url), "", "{url}");
        }
        assert!(error("tcp:").contains("names no host"));
        for url in ["tcp://bob@a", "tcp://a/b", "tcp://a:1,b:2"] {
            assert!(error(url).starts_with("tcp: "), "{url}: {}", error(url));
        }
        assert!(!error("tcp://bob:hunter2@a").contains("hunter2"));
    }

    #[test]
    fn buffer_beyond_the_limit_of_a_kernel_is_not_available_with_the_setting() {
        let place = Arc::new(Place { host: "a".to_owned(), port: 1 });
        let driver = Tcp { place, hello: OnceLock::new() };
        let hello = Hello { largest_receive: 10_000, ..Hello::default() };
        driver.hello.set(hello).unwrap();
        let of = |socket_buffer, block| {
            driver.supports(&Operation::Flow(Flow { kind: FlowKind::Stream, socket_buffer, block }))
        };
        assert_eq!((of(0, 1), of(10_000, LARGEST_BLOCK)), (Support::Native, Support::Native));
        let reason = of(10_001, 1).refusal().unwrap().to_owned();
        assert!(
            reason.contains("sysctl -w net.core.rmem_max=10001") && reason.contains("listener's host"),
            "{reason}"
        );
        assert!(of(0, LARGEST_BLOCK + 1).refusal().unwrap().contains("at most"));
        assert!(driver.supports(&Operation::Begin).refusal().unwrap().contains("no database"));
    }
}
