//! Finds agents: on NATS by a call that all answer, with `ssh` by starting them.

use super::link::{Event, Link, pass_lines};
use super::member::Member;
use crate::message::{About, Answer, Call, FromAgent, Roles};
use crate::nats::{Bus, CALL, Received, subject_of};
use crate::place::{FleetUrl, token};
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_observe::{AgentProcess, DEFAULT_COMMAND, PROTOCOL};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long agents have to answer a call, …
const WINDOW: Duration = Duration::from_secs(1);
/// … if as many are wanted as have not answered yet.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is repeated: an agent may just be connecting.
const AGAIN: Duration = Duration::from_millis(250);

/// Which agents a run wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where they are.
    pub url: FleetUrl,
    /// Their number; `None`: all that answer.
    pub agents: Option<u32>,
    /// Labels that each must have.
    pub labels: BTreeMap<String, String>,
    /// The command that starts a program on another host, with its options; `None`: `ssh`.
    pub command: Option<String>,
    /// What becomes of the run if it loses one.
    pub on_lost: OnLostAgent,
}

/// Agents that were found, which have not joined yet.
pub(super) struct Found {
    pub(super) members: Vec<Member>,
    pub(super) events: Receiver<Event>,
}

pub(super) fn find(wanted: &Wanted) -> Result<Found> {
    let (to, events) = channel();
    let members = match &wanted.url {
        FleetUrl::Nats(url) => on_nats(url, wanted, to)?,
        FleetUrl::Ssh(hosts) => with_ssh(hosts, wanted, &to)?,
    };
    Ok(Found { members, events })
}

fn with_ssh(hosts: &[String], wanted: &Wanted, to: &Sender<Event>) -> Result<Vec<Member>> {
    if !wanted.labels.is_empty() {
        return Err(Error::usage("--agent-label selects agents on a broker, not those that ssh starts"));
    }
    let count = wanted.agents.map_or(hosts.len(), |agents| agents as usize);
    if count > hosts.len() {
        return Err(Error::usage(format!("--agents {count}: --fleet names {} hosts", hosts.len())));
    }
    let command = wanted.command.as_deref().unwrap_or(DEFAULT_COMMAND);
    let start = |host: &String| {
        let words: Vec<String> =
            command.split_whitespace().chain([host.as_str()]).map(str::to_owned).collect();
        let failed = |why: String| {
            Error::new(ErrorKind::Unreachable, format!("agent {host}: {why}"))
                .hint(format!("try '{} kurabe agent --stdio'", words.join(" ")))
        };
        AgentProcess::start(&words).map_err(failed)
    };
    let processes: Vec<Result<AgentProcess>> = thread::scope(|scope| {
        let start = &start;
        let starts: Vec<_> = hosts[..count].iter().map(|host| scope.spawn(move || start(host))).collect();
        let panicked = |_| Err(Error::new(ErrorKind::Internal, "the thread that starts an agent panicked"));
        starts.into_iter().map(|start| start.join().unwrap_or_else(panicked)).collect()
    });
    let mut members = Vec::with_capacity(count);
    for (agent, (process, host)) in processes.into_iter().zip(hosts).enumerate() {
        let mut process = process?;
        let (lines, errors) = process.take_output();
        pass_lines(agent, lines, errors, to.clone())
            .map_err(|why| Error::no_thread("an agent's lines", why))?;
        members.push(Member::new(host.clone(), Roles::default(), Link::Pipe(process)));
    }
    name_uniquely(&mut members);
    Ok(members)
}

fn on_nats(url: &str, wanted: &Wanted, to: Sender<Event>) -> Result<Vec<Member>> {
    let shown = wanted.url.shown();
    let bus = Arc::new(Bus::connect(url, &shown, "kurabe run")?);
    let publisher = bus.publisher()?;
    let inbox = format!("_INBOX.{}", token());
    let (replies, received) = channel();
    bus.subscribe(&format!("{inbox}.*"), replies)?;
    let call = serde_json::to_vec(&Call { kurabe_fleet: PROTOCOL })
        .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    let reply = format!("{inbox}.call");
    let asked = || publisher.publish(CALL, Some(&reply), call.clone());
    let answered = answers(&received, wanted, asked);
    let chosen = choose(answered, wanted, &shown)?;
    let mut members = Vec::with_capacity(chosen.len());
    for (agent, about) in chosen.into_iter().enumerate() {
        let link = Link::Nats {
            publisher: publisher.clone(),
            subject: subject_of(&about.id),
            reply: format!("{inbox}.{agent}"),
            _bus: Arc::clone(&bus),
        };
        members.push(Member::new(about.agent.name.clone(), about.roles, link));
    }
    name_uniquely(&mut members);
    let pass = move || {
        for Received { at, subject, payload, .. } in received {
            let agent = subject.rsplit_once('.').and_then(|(_, agent)| agent.parse().ok());
            // Late answers to the call have no number.
            let Some(agent) = agent else { continue };
            if to.send(Event::Line { agent, at, line: payload }).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("agents".to_owned())
        .spawn(pass)
        .map_err(|why| Error::no_thread("the agents' answers", why))?;
    Ok(members)
}

/// Calls until enough agents have answered and no further one was heard of for a while, or the time is over.
fn answers(received: &Receiver<Received>, wanted: &Wanted, call: impl Fn()) -> Vec<About> {
    let began = Instant::now();
    let until = began + if wanted.agents.is_some() { PATIENCE } else { WINDOW };
    let mut found: Vec<About> = Vec::new();
    let mut next = began;
    let mut last_new = began;
    loop {
        let now = Instant::now();
        let enough = wanted.agents.is_some_and(|agents| {
            found.iter().filter(|about| refusal(about, wanted).is_none()).count() >= agents as usize
        });
        // The last run may be ending.
        let is_observer = |about: &About| about.roles.observe && !about.roles.load;
        let leaves = found.iter().any(|about| is_observer(about) && about.busy.is_some());
        let wait = if leaves { WINDOW } else { AGAIN };
        if enough && last_new.elapsed() >= wait || now >= until {
            return found;
        }
        if now >= next {
            call();
            next = now + AGAIN;
        }
        let wait = next.min(until).saturating_duration_since(now);
        let Ok(message) = received.recv_timeout(wait) else { continue };
        if let Ok(Answer::Fleet(frame)) = serde_json::from_slice(&message.payload)
            && let FromAgent::Here(about) = frame.message
        {
            let known = found.len();
            found.retain(|known| known.id != about.id);
            if found.len() == known {
                last_new = Instant::now();
            }
            found.push(*about);
        }
    }
}

/// Why a run does not use this agent at all, as a clause; `None` if it may.
fn unfit(about: &About) -> Option<String> {
    about.refusal().or_else(|| about.busy.as_ref().map(|run| format!("it belongs to run {run}")))
}

/// Why a run has no clients on this agent, as a clause; `None` if it may.
fn refusal(about: &About, wanted: &Wanted) -> Option<String> {
    if !about.roles.load {
        return Some("its role is to observe".to_owned());
    }
    let lacking = wanted.labels.iter().find(|(name, value)| about.agent.labels.get(*name) != Some(value));
    if let Some((name, value)) = lacking {
        return Some(format!("it is not labelled {name}={value}"));
    }
    unfit(about)
}

/// The agents that a run uses: first those that run clients, by name, then those that only observe servers. Labels select
/// the former; an observer belongs to the run if it finds one of its servers.
fn choose(mut answered: Vec<About>, wanted: &Wanted, shown: &str) -> Result<Vec<About>> {
    answered.sort_by(|a, b| (&a.agent.name, &a.id).cmp(&(&b.agent.name, &b.id)));
    let (usable, refused): (Vec<About>, Vec<About>) =
        answered.into_iter().partition(|about| refusal(about, wanted).is_none());
    let needed = wanted.agents.unwrap_or(1).max(1) as usize;
    let reasons = refused.iter().filter_map(|about| {
        Some(printable(&format!("agent {}: {}", about.agent.name, refusal(about, wanted)?)).into_owned())
    });
    let reasons: Vec<String> = reasons.collect();
    // Other labels are no fault. Another version is: results would come from fewer machines than the user believes.
    let wrong = refused.iter().any(|about| about.refusal().is_some());
    if usable.len() < needed || (wrong && wanted.agents.is_none()) {
        let found = usable.len();
        let what = if usable.len() < needed {
            format!("{shown}: {found} of {needed} agents answered")
        } else {
            format!("{shown}: not all agents can be used")
        };
        let error = Error::new(ErrorKind::Unreachable, what)
            .hint(format!("start more with 'kurabe agent --broker {shown}', or set --agents"));
        return Err(error.log(reasons.iter().map(String::as_str)));
    }
    let mut chosen = usable;
    let rest = chosen.split_off(chosen.len().min(wanted.agents.map_or(usize::MAX, |agents| agents as usize)));
    let observers =
        refused.into_iter().chain(rest).filter(|about| about.roles.observe && unfit(about).is_none());
    chosen.extend(observers.map(|about| About { roles: Roles { load: false, observe: true }, ..about }));
    Ok(chosen)
}

/// Gives agents of one name numbers.
fn name_uniquely(members: &mut [Member]) {
    let names: Vec<String> = members.iter().map(|member| printable(&member.name).into_owned()).collect();
    for (at, member) in members.iter_mut().enumerate() {
        let earlier = names[..at].iter().filter(|name| **name == names[at]).count();
        member.name = if earlier == 0 { names[at].clone() } else { format!("{}#{}", names[at], earlier + 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, labels: &[(&str, &str)]) -> About {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        About::this(Some(name), labels)
    }

    fn wanted(agents: Option<u32>, labels: &[(&str, &str)]) -> Wanted {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Wanted {
            url: FleetUrl::Nats("nats://h".to_owned()),
            agents,
            labels,
            command: None,
            on_lost: OnLostAgent::Fail,
        }
    }

    fn names(answered: Vec<About>, wanted: &Wanted) -> Result<Vec<String>, String> {
        let chosen = choose(answered, wanted, "nats://h").map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|about| about.agent.name).collect())
    }

    #[test]
    fn agents_are_chosen_by_label_and_number() {
        let all = || vec![agent("c", &[("rack", "a")]), agent("a", &[]), agent("b", &[("rack", "a")])];
        assert_eq!(names(all(), &wanted(None, &[])).unwrap(), ["a", "b", "c"]);
        assert_eq!(names(all(), &wanted(None, &[("rack", "a")])).unwrap(), ["b", "c"]);
        assert_eq!(names(all(), &wanted(Some(2), &[])).unwrap(), ["a", "b"]);
        let error = names(all(), &wanted(Some(3), &[("rack", "a")])).unwrap_err();
        assert!(
            error.contains("2 of 3 agents answered") && error.contains("agent a: it is not labelled rack=a")
        );
    }

    #[test]
    fn observers_follow_the_agents_that_run_clients() {
        let roles = |load, observe| Roles { load, observe };
        let with = |name: &str, roles: Roles| About { roles, ..agent(name, &[]) };
        let all = || {
            let both = About { roles: roles(true, true), ..agent("c", &[("rack", "a")]) };
            vec![
                with("a", roles(false, true)),
                with("d", roles(true, true)),
                agent("b", &[("rack", "a")]),
                both,
            ]
        };
        let chosen = |wanted: &Wanted| {
            let chosen = choose(all(), wanted, "nats://h").unwrap();
            chosen.into_iter().map(|about| (about.agent.name, about.roles.load)).collect::<Vec<_>>()
        };
        let expected = |text: &str| {
            let one = |word: &str| (word[1..].to_owned(), word.starts_with('+'));
            text.split(' ').map(one).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&wanted(None, &[])), expected("+b +c +d -a"));
        assert_eq!(chosen(&wanted(Some(1), &[])), expected("+b -a -c -d"));
        assert_eq!(chosen(&wanted(None, &[("rack", "a")])), expected("+b +c -a -d"));
        let error = names(vec![with("a", roles(false, true))], &wanted(None, &[])).unwrap_err();
        assert!(
            error.contains("0 of 1 agents answered") && error.contains("its role is to observe"),
            "{error}"
        );
    }

    #[test]
    fn agent_of_another_version_or_run_is_named_with_the_reason() {
        let old = || About { kurabe: "0.0.1".to_owned(), ..agent("old", &[]) };
        let error = names(vec![agent("a", &[]), old()], &wanted(None, &[])).unwrap_err();
        assert!(error.contains("agent old: it is version 0.0.1 of kurabe"), "{error}");
        assert_eq!(names(vec![agent("a", &[]), old()], &wanted(Some(1), &[])).unwrap(), ["a"]);
        let busy = About { busy: Some(crate::place::named("r")), ..agent("b", &[]) };
        assert!(names(vec![busy], &wanted(None, &[])).unwrap_err().contains("agent b: it belongs to run r"));
        assert!(names(Vec::new(), &wanted(None, &[])).unwrap_err().contains("0 of 1 agents answered"));
    }
}
