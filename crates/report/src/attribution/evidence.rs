//! The evidence for an attribution: what was measured. A renderer makes one line of it, in its language.

use crate::attribution::facts::{Facts, Side};
use crate::attribution::{Bottleneck, Ground, Rule, Sides};
use crate::catalogue::translated;
use crate::format::micros;
use crate::messages::Language;
use crate::wording::{listed, say};
use kurabe_core::observation::TierUse;
use serde::{Serialize, Serializer};
use std::fmt;

/// The measurements of the trials that have this bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub(super) facts: Box<Facts>,
    pub(super) bottleneck: Bottleneck,
    pub(super) ground: Option<Ground>,
}

/// The line in English.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(Language::English))
    }
}

/// JSON has the line in English.
impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Evidence {
    /// One line without a full stop.
    pub fn line(&self, language: Language) -> String {
        let Self { facts, bottleneck, ground } = self;
        let line = match ground {
            Some(ground) => with_ground(facts, *bottleneck, *ground, language),
            None => without_ground(facts, *bottleneck, language),
        };
        line + &tiers(facts, *bottleneck, language)
    }
}

fn with_ground(facts: &Facts, bottleneck: Bottleneck, ground: Ground, language: Language) -> String {
    let (found, client) = (found(facts, bottleneck, ground, language), client(facts, language));
    let server = facts.server.map(|server| (cpus(server.cpu, language), percent(server.cpu)));
    match (bottleneck, server) {
        (Bottleneck::ProcessCpu, _) | (Bottleneck::ClientCpu, None) => found,
        (Bottleneck::ServerCpu, _) | (_, None) => say!(language, "{found}; {client}", "{found}。{client}"),
        (Bottleneck::ClientCpu, Some((used, _))) => {
            say!(language, "{found}; the server used {used}", "{found}。サーバーは {used} を使用")
        }
        (_, Some((_, share))) => say!(
            language,
            "{found}; {client}, the server at {share} of a CPU",
            "{found}。{client}、サーバーは CPU の {share}"
        ),
    }
}

/// How much of one processor the client used.
fn client(facts: &Facts, language: Language) -> String {
    let share = percent(facts.client.cpu);
    say!(language, "the client at {share} of a CPU", "クライアントは CPU の {share}")
}

/// The measurement of a rule.
fn found(facts: &Facts, bottleneck: Bottleneck, ground: Ground, language: Language) -> String {
    let share = percent(ground.share);
    match ground.rule {
        Rule::Thread(Sides::Server) => say!(
            language,
            "one thread of the server used {share} of a CPU",
            "サーバーの 1 スレッドが CPU の {share} を使用"
        ),
        Rule::Thread(Sides::Client) if bottleneck == Bottleneck::ProcessCpu => process(facts, language),
        Rule::Thread(Sides::Client) if facts.agent.is_some() => {
            let agent = of_agent(facts, language);
            say!(
                language,
                "the clients' threads{agent} were running for {share} of the time",
                "{agent}クライアントのスレッドが時間の {share} で実行中"
            )
        }
        Rule::Capacity(Sides::Client) if facts.agent.is_some() => {
            let agent = of_agent(facts, language);
            say!(
                language,
                "the client{agent} used {share} of its processors",
                "{agent}クライアントがプロセッサーの {share} を使用"
            )
        }
        Rule::Thread(Sides::Client) => {
            let who =
                if facts.threads > 1.0 { "the clients' threads were" } else { "the client's thread was" };
            say!(
                language,
                "{who} running for {share} of the time",
                "クライアントのスレッドが時間の {share} で実行中"
            )
        }
        Rule::PerClient => say!(
            language,
            "the server was busy with each client's requests for {share} of the time",
            "サーバーが各クライアントの要求を時間の {share} で処理中"
        ),
        Rule::Capacity(side) => capacity(facts, side, language),
        Rule::SharedCpus => shared(facts, ground.share, language),
        Rule::Ready(side) => {
            let server = facts.server.unwrap_or_default();
            let (who, whose, work, queue) = match side {
                Sides::Client => {
                    ("the client", "クライアント", facts.client_thread(), facts.client_thread_queue())
                }
                Sides::Server => {
                    ("a thread of the server", "サーバーの 1 スレッド", server.thread, server.thread_queue)
                }
            };
            let (work, queue) = (percent(work), percent(queue));
            say!(
                language,
                "{who} was running for {work} of the time, and runnable but waiting for a processor for {queue}",
                "{whose}は時間の {work} で実行中、{queue} でプロセッサーを待機"
            )
        }
        _ => waited(facts, ground, language),
    }
}

/// The measurement of a rule of networks, locks, logs and storage.
fn waited(facts: &Facts, ground: Ground, language: Language) -> String {
    let (share, round_trip) = (percent(ground.share), micros(facts.round_trip_us));
    let (wire, reported) = (facts.wire.unwrap_or_default(), facts.reported.clone().unwrap_or_default());
    match ground.rule {
        Rule::Interface => say!(
            language,
            "the network interface used {share} of its capacity",
            "ネットワークインターフェイスが容量の {share} を使用"
        ),
        Rule::WireTime => {
            let network = micros(wire.rtt_us);
            say!(
                language,
                "of a round trip of {round_trip}, the network takes {network}",
                "往復 {round_trip} のうちネットワークが {network}"
            )
        }
        Rule::InTransit => {
            let (held, samples) = (percent(wire.at_server), wire.classified);
            say!(
                language,
                "in a round trip of {round_trip}, the server had a request in {held} of {samples} samples",
                "往復 {round_trip} の間、サーバーに要求があったのは標本 {samples} 件の {held}"
            )
        }
        Rule::LocksReported => {
            let lock = reported.lock.map_or_else(String::new, |lock| format!(" ({lock})"));
            let samples = reported.samples;
            say!(
                language,
                "the server reports waits for locks in {share} of {samples} session samples{lock}",
                "サーバーの報告では、セッションの標本 {samples} 件の {share} がロックを待機{lock}"
            )
        }
        Rule::HeldRequests => {
            let samples = wire.classified;
            say!(
                language,
                "the server had unanswered requests in {share} of {samples} samples, and used little CPU and no storage",
                "標本 {samples} 件の {share} でサーバーに未応答の要求があり、CPU はわずか、ストレージは使わず"
            )
        }
        Rule::Slept => say!(
            language,
            "clients slept for {share} of the time, but not for storage",
            "クライアントは時間の {share} で休止(ストレージのためではない)"
        ),
        Rule::LogReported => {
            let event =
                reported.other.map_or_else(String::new, |(event, _)| format!(" (\u{201c}{event}\u{201d})"));
            let samples = reported.samples;
            say!(
                language,
                "the server reports waits for the log in {share} of {samples} session samples{event}",
                "サーバーの報告では、セッションの標本 {samples} 件の {share} がログを待機{event}"
            )
        }
        Rule::StorageSamples => {
            let who = if facts.in_process { "a client waited" } else { "the server waited" };
            let whose = if facts.in_process { "クライアント" } else { "サーバー" };
            let (samples, wait) = (facts.disk.samples, engine_wait(facts, language));
            say!(
                language,
                "{who} for storage in {share} of {samples} samples{wait}",
                "標本 {samples} 件の {share} で{whose}がストレージを待機{wait}"
            )
        }
        // The rules of processors are told above.
        _ => {
            say!(language, "the disk was busy for {share} of the time", "ディスクは時間の {share} で動作中")
        }
    }
}

/// The agent that was nearest to its limit.
fn of_agent(facts: &Facts, language: Language) -> String {
    facts.agent.as_ref().map_or_else(String::new, |agent| {
        let name = &agent.name;
        say!(language, " of agent {name}", "エージェント {name} の")
    })
}

/// The evidence if no resource is named.
fn without_ground(facts: &Facts, bottleneck: Bottleneck, language: Language) -> String {
    let server = facts.server.unwrap_or_default();
    let (round_trip, of_client) = (micros(facts.round_trip_us), |used: f64| percent(used / facts.clients));
    let (cpu, client) = (of_client(facts.client.cpu), client(facts, language));
    match bottleneck {
        Bottleneck::Load => {
            let server = facts.server.map_or_else(String::new, |server| {
                let share = percent(server.cpu);
                say!(language, ", the server at {share} of a CPU", "、サーバーは CPU の {share}")
            });
            say!(
                language,
                "the rate was served without delay; {client}{server}",
                "この速さを遅れなく処理。{client}{server}"
            )
        }
        Bottleneck::Latency if facts.in_process => {
            let queue = of_client(facts.client.queue);
            say!(
                language,
                "of an operation of {round_trip}, CPU took {cpu} and waiting for a processor {queue}; the rest is \
                 wake-ups and other waits",
                "操作 {round_trip} のうち CPU が {cpu}、プロセッサー待ちが {queue}。残りは起床とほかの待ち"
            )
        }
        Bottleneck::Latency => {
            let (server, queue) =
                (of_client(server.cpu), of_client(facts.client.queue + facts.turn + server.queue));
            let wait = engine_wait(facts, language);
            say!(
                language,
                "of a round trip of {round_trip}, the client's CPU took {cpu}, the server's {server}, and waiting for \
                 a processor {queue}; the rest is wake-ups, network and other waits{wait}",
                "往復 {round_trip} のうちクライアントの CPU が {cpu}、サーバーの CPU が {server}、プロセッサー待ちが {queue}。\
                 残りは起床、ネットワーク、ほかの待ち{wait}"
            )
        }
        _ => {
            if let Some(why) = &facts.unseen {
                let why = translated(why, language);
                return say!(
                    language,
                    "the server was not observed: {why}; {client}",
                    "サーバーは観測できず({why})。{client}"
                );
            }
            let (busy, others) = (percent(facts.cores_busy), others(facts));
            let queue = percent((facts.client.queue / facts.clients).min(1.0));
            say!(
                language,
                "the processors were {busy} busy, {others} with other processes; the client waited for a processor for \
                 {queue} of the time",
                "プロセッサーは {busy} が使用中、うち {others} はほかのプロセス。クライアントは時間の {queue} でプロセッサーを待機"
            )
        }
    }
}

/// The most frequent wait other than for locks that the server reports, if it is frequent enough.
fn engine_wait(facts: &Facts, language: Language) -> String {
    let other = facts.reported.as_ref().and_then(|reported| reported.other.as_ref());
    other.filter(|(_, share)| *share >= 0.3).map_or_else(String::new, |(event, share)| {
        let share = percent(*share);
        say!(
            language,
            "; the server reports waits for \u{201c}{event}\u{201d} in {share} of the session samples",
            "。サーバーの報告では、セッションの標本の {share} が「{event}」を待機"
        )
    })
}

/// The process that contains client and database.
fn process(facts: &Facts, language: Language) -> String {
    let own = facts.own_share.map_or_else(String::new, |own| {
        let own = percent(own);
        say!(language, ", {own} of that by the tool itself", "、うち {own} は道具自身")
    });
    let used = cpus(facts.client.cpu, language);
    say!(
        language,
        "the process with client and database used {used}{own}",
        "クライアントとデータベースのプロセスが {used} を使用{own}"
    )
}

/// The CPU usage of a side, relative to its limit.
fn capacity(facts: &Facts, side: Sides, language: Language) -> String {
    let (who, whose, one): (_, _, Side) = match side {
        Sides::Client => ("the client", "クライアント", facts.client),
        Sides::Server => ("the server", "サーバー", facts.server.unwrap_or_default()),
    };
    let used = number(one.cpu);
    if let Some(quota) = one.quota {
        let quota = number(quota);
        return say!(
            language,
            "{who} used {used} of the {quota} CPUs allowed by its control group",
            "{whose}はコントロールグループで許された {quota} CPU のうち {used} を使用"
        );
    }
    let (own, count) = (plural(one.capacity), number(one.capacity));
    say!(language, "{who} used {used} of its {own}", "{whose}は {count} CPU のうち {used} を使用")
}

fn shared(facts: &Facts, busy: f64, language: Language) -> String {
    if facts.in_process {
        return process(facts, language);
    }
    let of_all = |cpu: f64| percent(cpu / facts.cores.max(1.0));
    let (server, client) = (of_all(facts.server.unwrap_or_default().cpu), of_all(facts.client.cpu));
    let (shared, count, busy, others) =
        (plural(facts.cores), number(facts.cores), percent(busy), others(facts));
    say!(
        language,
        "the {shared} shared by client and server were {busy} busy: server {server}, client {client}, others {others}",
        "クライアントとサーバーが共有する {count} CPU は {busy} が使用中: サーバー {server}、クライアント {client}、ほか {others}"
    )
}

/// The share of the machine's CPU that other processes used.
fn others(facts: &Facts) -> String {
    percent(facts.others / facts.machine.max(1.0))
}

fn plural(count: f64) -> String {
    if (count - 1.0).abs() < 1e-9 { "1 CPU".to_owned() } else { format!("{} CPUs", number(count)) }
}

fn cpus(used: f64, language: Language) -> String {
    let used = number(used);
    say!(language, "{used} CPUs", "{used} CPU")
}

fn number(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The share of the server side's CPU above which it counts as one tier's.
const MAX: f64 = 0.6;

/// The addition to the evidence, as a clause; empty for a single tier.
fn tiers(facts: &Facts, bottleneck: Bottleneck, language: Language) -> String {
    if facts.tiers.is_empty() {
        return String::new();
    }
    let tiers: Vec<String> = facts
        .tiers
        .iter()
        .map(|(name, cpu)| {
            let name = tier(name, language);
            match cpu {
                Some(cpu) => say!(language, "{name} {cpu:.2} CPUs", "{name} {cpu:.2} CPU"),
                None => say!(language, "{name} not observed", "{name}は観測なし"),
            }
        })
        .collect();
    let full = if bottleneck == Bottleneck::ServerCpu { fullest(facts) } else { None };
    let full = full.map_or_else(String::new, |name| {
        let tier = tier(name, language);
        say!(language, "; the {tier} is the bottleneck", "。ボトルネックは{tier}")
    });
    let tiers = listed(&tiers, language);
    say!(language, "; behind the client, {tiers}{full}", "。クライアントの背後は {tiers}{full}")
}

/// The name of a tier; applications may be numbered.
fn tier(name: &str, language: Language) -> String {
    let (kind, number) =
        name.split_once(' ').map_or((name, String::new()), |(kind, n)| (kind, format!(" {n}")));
    match (language, kind) {
        (Language::Japanese, TierUse::APPLICATION) => format!("アプリケーション{number}"),
        (Language::Japanese, TierUse::DATABASE) => "データベース".to_owned(),
        (Language::Japanese, TierUse::REMOTE) => "リモート".to_owned(),
        _ => name.to_owned(),
    }
}

/// The tier with most of the server side's CPU, if there is one and all were observed.
fn fullest(facts: &Facts) -> Option<&'static str> {
    let mut sums = [(TierUse::APPLICATION, 0.0), (TierUse::DATABASE, 0.0), (TierUse::REMOTE, 0.0)];
    for (name, cpu) in &facts.tiers {
        // Applications may be numbered.
        let kind = sums.iter().position(|(known, _)| known == name).unwrap_or(0);
        sums[kind].1 += (*cpu)?;
    }
    let whole: f64 = sums.iter().map(|(_, cpu)| cpu).sum();
    sums.into_iter().find(|(_, cpu)| *cpu >= MAX * whole).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::facts::{AgentFacts, Reported};
    use crate::attribution::thresholds::quiet;
    use Bottleneck::{ClientCpu, Disk, Latency, Load, Locks, Network, ProcessCpu, ServerCpu, Unknown};
    use Sides::{Client, Server};

    /// The line of a trial with these facts, in both languages.
    fn lines(bottleneck: Bottleneck, rule: Option<Rule>, change: impl FnOnce(&mut Facts)) -> [String; 2] {
        let mut facts = Box::new(quiet());
        change(&mut facts);
        let ground = rule.map(|rule| Ground { rule, share: 0.8, threshold: 0.5 });
        let evidence = Evidence { facts, bottleneck, ground };
        [Language::English, Language::Japanese].map(|language| evidence.line(language))
    }

    fn unchanged(_: &mut Facts) {}

    fn with_agent(facts: &mut Facts) {
        facts.agent = Some(AgentFacts { name: "b".to_owned(), side: Side::default(), thread: 0.5 });
    }

    fn in_process(facts: &mut Facts) {
        (facts.in_process, facts.server, facts.own_share) = (true, None, Some(0.25));
        (facts.client.cpu, facts.client.queue) = (1.0, 0.8);
    }

    /// A client whose two threads ran for 30 % of the time each, and a server's busiest thread for 40 %.
    fn queued(facts: &mut Facts) {
        (facts.threads, facts.client.cpu, facts.client.queue, facts.client.thread) = (2.0, 0.6, 0.9, 0.5);
        let server = facts.server.as_mut().unwrap();
        (server.thread, server.thread_queue) = (0.4, 0.35);
    }

    fn said(facts: &mut Facts) {
        facts.reported = Some(Reported {
            samples: 40,
            locks: 0.0,
            logs: 0.0,
            lock: Some("tuple".to_owned()),
            other: Some(("WALSync".to_owned(), 0.3)),
        });
    }

    /// What is changed in a quiet trial, and what is said of it in both languages.
    type Case = (Bottleneck, Rule, fn(&mut Facts), &'static str, &'static str);

    const CASES: &[Case] = &[
        (
            ServerCpu,
            Rule::Thread(Server),
            unchanged,
            "one thread of the server used 80 % of a CPU; the client at 40 % of a CPU",
            "サーバーの 1 スレッドが CPU の 80 % を使用。クライアントは CPU の 40 %",
        ),
        (
            ClientCpu,
            Rule::Thread(Client),
            unchanged,
            "the clients' threads were running for 80 % of the time; the server used 0.40 CPUs",
            "クライアントのスレッドが時間の 80 % で実行中。サーバーは 0.40 CPU を使用",
        ),
        (
            ClientCpu,
            Rule::Thread(Client),
            |facts| facts.threads = 1.0,
            "the client's thread was running for 80 % of the time; the server used 0.40 CPUs",
            "クライアントのスレッドが時間の 80 % で実行中。サーバーは 0.40 CPU を使用",
        ),
        (
            ClientCpu,
            Rule::Thread(Client),
            with_agent,
            "the clients' threads of agent b were running for 80 % of the time; the server used 0.40 CPUs",
            "エージェント b のクライアントのスレッドが時間の 80 % で実行中。サーバーは 0.40 CPU を使用",
        ),
        (
            ClientCpu,
            Rule::Capacity(Client),
            with_agent,
            "the client of agent b used 80 % of its processors; the server used 0.40 CPUs",
            "エージェント b のクライアントがプロセッサーの 80 % を使用。サーバーは 0.40 CPU を使用",
        ),
        (
            ProcessCpu,
            Rule::Thread(Client),
            in_process,
            "the process with client and database used 1 CPUs, 25 % of that by the tool itself",
            "クライアントとデータベースのプロセスが 1 CPU を使用、うち 25 % は道具自身",
        ),
        (
            ProcessCpu,
            Rule::SharedCpus,
            in_process,
            "the process with client and database used 1 CPUs, 25 % of that by the tool itself",
            "クライアントとデータベースのプロセスが 1 CPU を使用、うち 25 % は道具自身",
        ),
        (
            ClientCpu,
            Rule::Thread(Client),
            |facts| facts.server = None,
            "the clients' threads were running for 80 % of the time",
            "クライアントのスレッドが時間の 80 % で実行中",
        ),
        (
            ServerCpu,
            Rule::PerClient,
            unchanged,
            "the server was busy with each client's requests for 80 % of the time; the client at 40 % of a CPU",
            "サーバーが各クライアントの要求を時間の 80 % で処理中。クライアントは CPU の 40 %",
        ),
        (
            ServerCpu,
            Rule::Capacity(Server),
            unchanged,
            "the server used 0.40 of its 2 CPUs; the client at 40 % of a CPU",
            "サーバーは 2 CPU のうち 0.40 を使用。クライアントは CPU の 40 %",
        ),
        (
            ClientCpu,
            Rule::Capacity(Client),
            |facts| (facts.client.cpu, facts.client.capacity) = (0.98, 1.0),
            "the client used 0.98 of its 1 CPU; the server used 0.40 CPUs",
            "クライアントは 1 CPU のうち 0.98 を使用。サーバーは 0.40 CPU を使用",
        ),
        (
            ClientCpu,
            Rule::Capacity(Client),
            |facts| facts.client.quota = Some(0.5),
            "the client used 0.40 of the 0.50 CPUs allowed by its control group; the server used 0.40 CPUs",
            "クライアントはコントロールグループで許された 0.50 CPU のうち 0.40 を使用。サーバーは 0.40 CPU を使用",
        ),
        (
            ServerCpu,
            Rule::SharedCpus,
            |facts| facts.others = 0.8,
            "the 2 CPUs shared by client and server were 80 % busy: server 20 %, client 20 %, others 20 %; the client \
                 at 40 % of a CPU",
            "クライアントとサーバーが共有する 2 CPU は 80 % が使用中: サーバー 20 %、クライアント 20 %、ほか 20 %。クライアントは CPU の 40 %",
        ),
        (
            ClientCpu,
            Rule::Ready(Client),
            queued,
            "the client was running for 30 % of the time, and runnable but waiting for a processor for 45 %; the \
                 server used 0.40 CPUs",
            "クライアントは時間の 30 % で実行中、45 % でプロセッサーを待機。サーバーは 0.40 CPU を使用",
        ),
        (
            ServerCpu,
            Rule::Ready(Server),
            queued,
            "a thread of the server was running for 40 % of the time, and runnable but waiting for a processor for \
                 35 %; the client at 60 % of a CPU",
            "サーバーの 1 スレッドは時間の 40 % で実行中、35 % でプロセッサーを待機。クライアントは CPU の 60 %",
        ),
        (
            Network,
            Rule::Interface,
            unchanged,
            "the network interface used 80 % of its capacity",
            "ネットワークインターフェイスが容量の 80 % を使用",
        ),
        (
            Network,
            Rule::WireTime,
            unchanged,
            "of a round trip of 1 ms, the network takes 10 µs",
            "往復 1 ms のうちネットワークが 10 µs",
        ),
        (
            Network,
            Rule::InTransit,
            unchanged,
            "in a round trip of 1 ms, the server had a request in 50 % of 100 samples",
            "往復 1 ms の間、サーバーに要求があったのは標本 100 件の 50 %",
        ),
        (
            Locks,
            Rule::LocksReported,
            said,
            "the server reports waits for locks in 80 % of 40 session samples (tuple)",
            "サーバーの報告では、セッションの標本 40 件の 80 % がロックを待機 (tuple)",
        ),
        (
            Locks,
            Rule::HeldRequests,
            unchanged,
            "the server had unanswered requests in 80 % of 100 samples, and used little CPU and no storage",
            "標本 100 件の 80 % でサーバーに未応答の要求があり、CPU はわずか、ストレージは使わず",
        ),
        (
            Locks,
            Rule::Slept,
            unchanged,
            "clients slept for 80 % of the time, but not for storage",
            "クライアントは時間の 80 % で休止(ストレージのためではない)",
        ),
        (
            Disk,
            Rule::LogReported,
            said,
            "the server reports waits for the log in 80 % of 40 session samples (“WALSync”)",
            "サーバーの報告では、セッションの標本 40 件の 80 % がログを待機 (“WALSync”)",
        ),
        (
            Disk,
            Rule::StorageSamples,
            said,
            "the server waited for storage in 80 % of 20 samples; the server reports waits for “WALSync” in 30 % of \
                 the session samples",
            "標本 20 件の 80 % でサーバーがストレージを待機。サーバーの報告では、セッションの標本の 30 % が「WALSync」を待機",
        ),
        (
            Disk,
            Rule::StorageSamples,
            |facts| facts.in_process = true,
            "a client waited for storage in 80 % of 20 samples",
            "標本 20 件の 80 % でクライアントがストレージを待機",
        ),
        (
            Disk,
            Rule::DiskBusy,
            unchanged,
            "the disk was busy for 80 % of the time",
            "ディスクは時間の 80 % で動作中",
        ),
    ];

    #[test]
    fn each_rule_is_told_by_what_it_measured() {
        let both = "the client at 40 % of a CPU, the server at 40 % of a CPU";
        let japanese = "クライアントは CPU の 40 %、サーバーは CPU の 40 %";
        for (bottleneck, rule, change, wanted, wanted_in_japanese) in CASES {
            let wait = matches!(bottleneck, Network | Locks | Disk);
            let [english, found] = lines(*bottleneck, Some(*rule), change);
            let (after, after_in_japanese) =
                if wait { (format!("; {both}"), format!("。{japanese}")) } else { Default::default() };
            assert_eq!(english, format!("{wanted}{after}"), "{rule:?}");
            assert_eq!(found, format!("{wanted_in_japanese}{after_in_japanese}"), "{rule:?}");
        }
        let embedded = lines(Disk, Some(Rule::DiskBusy), |facts| facts.server = None);
        assert_eq!(embedded[0], "the disk was busy for 80 % of the time; the client at 40 % of a CPU");
        assert_eq!(embedded[1], "ディスクは時間の 80 % で動作中。クライアントは CPU の 40 %");
    }

    #[test]
    fn trial_without_a_saturated_resource_is_told_by_the_parts_of_its_time() {
        let [english, japanese] = lines(Load, None, unchanged);
        assert_eq!(
            english,
            "the rate was served without delay; the client at 40 % of a CPU, the server at 40 % of a CPU"
        );
        assert_eq!(japanese, "この速さを遅れなく処理。クライアントは CPU の 40 %、サーバーは CPU の 40 %");
        let [english, japanese] = lines(Load, None, |facts| facts.server = None);
        assert_eq!(english, "the rate was served without delay; the client at 40 % of a CPU");
        assert_eq!(japanese, "この速さを遅れなく処理。クライアントは CPU の 40 %");
        let [english, japanese] = lines(Latency, None, in_process);
        assert_eq!(
            english,
            "of an operation of 1 ms, CPU took 25 % and waiting for a processor 20 %; the rest is wake-ups and other waits"
        );
        assert_eq!(japanese, "操作 1 ms のうち CPU が 25 %、プロセッサー待ちが 20 %。残りは起床とほかの待ち");
        // Of four clients: queues of 0.4, 0.2 and 0.6 of a processor.
        let [english, japanese] = lines(Latency, None, |facts| {
            said(facts);
            (facts.client.queue, facts.turn, facts.server.as_mut().unwrap().queue) = (0.4, 0.2, 0.6);
            facts.server.as_mut().unwrap().cpu = 0.8;
        });
        assert_eq!(
            english,
            "of a round trip of 1 ms, the client's CPU took 10 %, the server's 20 %, and waiting for a processor 30 %; \
             the rest is wake-ups, network and other waits; the server reports waits for “WALSync” in 30 % of the \
             session samples"
        );
        assert!(japanese.starts_with(
            "往復 1 ms のうちクライアントの CPU が 10 %、サーバーの CPU が 20 %、プロセッサー待ちが 30 %。残りは起床"
        ));
        let seldom = |facts: &mut Facts| {
            said(facts);
            facts.reported.as_mut().unwrap().other.as_mut().unwrap().1 = 0.29;
        };
        assert!(!lines(Latency, None, seldom)[0].contains("WALSync"));
        let [english, japanese] =
            lines(Unknown, None, |facts| facts.unseen = Some("it is elsewhere".to_owned()));
        assert_eq!(english, "the server was not observed: it is elsewhere; the client at 40 % of a CPU");
        assert!(japanese.ends_with("。クライアントは CPU の 40 %"));
        // Of a machine of four processors, and of four clients.
        let unknown = |facts: &mut Facts| (facts.others, facts.client.queue) = (1.0, 3.0);
        let [english, japanese] = lines(Unknown, None, unknown);
        assert_eq!(
            english,
            "the processors were 40 % busy, 25 % with other processes; the client waited for a processor for 75 % of the time"
        );
        assert_eq!(
            japanese,
            "プロセッサーは 40 % が使用中、うち 25 % はほかのプロセス。クライアントは時間の 75 % でプロセッサーを待機"
        );
        assert!(lines(Unknown, None, |facts| facts.client.queue = 9.0)[0].ends_with("for 100 % of the time"));
    }

    #[test]
    fn tier_is_named_from_three_fifths_of_the_servers_cpu_on() {
        let tiers = |cpu: [Option<f64>; 2]| {
            let set = |facts: &mut Facts| {
                let names = [TierUse::APPLICATION, TierUse::DATABASE].map(str::to_owned);
                facts.tiers = names.into_iter().zip(cpu).collect();
            };
            lines(ServerCpu, Some(Rule::Thread(Server)), set)
        };
        let [english, japanese] = tiers([Some(0.6), Some(0.4)]);
        let end = "; behind the client, application 0.60 CPUs and database 0.40 CPUs; the application is the bottleneck";
        assert!(english.ends_with(end), "{english}");
        assert!(japanese.ends_with("。ボトルネックはアプリケーション"), "{japanese}");
        assert!(!tiers([Some(0.59), Some(0.41)])[0].contains("bottleneck"));
        let names = ["application 2", "database", "remote"].map(|name| tier(name, Language::Japanese));
        assert_eq!(names, ["アプリケーション 2", "データベース", "リモート"]);
        assert!(tiers([Some(0.1), Some(0.9)])[0].ends_with("the database is the bottleneck"));
        let [english, japanese] = tiers([None, Some(0.9)]);
        assert!(english.ends_with("application not observed and database 0.90 CPUs"), "{english}");
        assert!(japanese.contains("アプリケーションは観測なし"), "{japanese}");
    }
}
