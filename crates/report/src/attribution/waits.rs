//! Waits: what the clients spent most of their time waiting for.

use super::bottleneck::{Bottleneck, Confidence, Judged, Rule};
use super::facts::Facts;
use super::saturation::AT_WORK;

/// The share of the clients' time without CPU usage of either side that counts as waiting.
const IDLE: f64 = 0.5;
/// The share of available processors above which a database did not only wait.
const BUSY: f64 = 0.5;
/// The minimum number of samples for a reliable statement.
const FEW: u64 = 10;
/// The minimum number of session samples.
const FEW_SAMPLES: u64 = 4;
/// The utilisation above which an interface counts as saturated.
const INTERFACE: f64 = 0.85;
/// The share of time that clients of an embedded database sleep if it waits.
const SLEPT: f64 = 0.6;
/// The network's share of a round trip that makes it the bottleneck.
const WIRE: f64 = 0.5;
/// The share of samples with unanswered requests at the server.
const HELD: f64 = 0.6;
/// The share of samples with requests or replies in transit.
const TRANSIT: f64 = 0.7;
/// The share of samples with a thread waiting for storage.
const WAITED: f64 = 0.5;
/// The share of time with a busy disk.
const DISK_BUSY: f64 = 0.6;
/// The share of the clients' time for which a common wait is the bottleneck, …
const LOCKED: f64 = 0.5;
/// … most likely is the bottleneck, unless another wait is longer, …
pub(super) const PARTLY: f64 = 0.3;
/// … and below which it is not.
const UNLOCKED: f64 = 0.2;

/// The resource that the clients waited for.
pub(super) fn waiting(facts: &Facts) -> Option<Judged> {
    if facts.served() {
        return None;
    }
    let (locks, network) = (Bottleneck::Locks, Bottleneck::Network);
    if let Some(judged) = Judged::by(network, Confidence::High, Rule::Interface, facts.interface, INTERFACE) {
        return Some(judged);
    }
    // Of waits for locks and for the log, the more frequent one is more likely.
    if let Some(reported) = &facts.reported
        && (reported.locks >= LOCKED || reported.locks > reported.logs)
    {
        let sure = reported.locks >= LOCKED && reported.samples >= FEW;
        let confidence = if sure { Confidence::High } else { Confidence::Low };
        let judged = Judged::by(locks, confidence, Rule::LocksReported, reported.locks, PARTLY);
        if judged.is_some() {
            return judged;
        }
    }
    let idle = facts.idle();
    let disk = disk(facts, idle);
    if disk.is_some() {
        return disk;
    }
    if idle < IDLE || facts.disk.waiting >= 0.4 {
        return None;
    }
    // With many clients most sleep in any case. A database that used half of the processors did not only wait.
    let database = if facts.in_process { Some(&facts.client) } else { facts.server.as_ref() };
    let rests = database.is_none_or(|side| side.cpu < BUSY * side.capacity);
    if facts.in_process {
        // Sleep within one process that is not for storage is for a lock.
        let slept = Judged::by(locks, Confidence::Low, Rule::Slept, idle, SLEPT);
        return slept.filter(|_| facts.disk.samples >= FEW && rests);
    }
    let wire = facts.wire.as_ref()?;
    let wire_share = wire.rtt_us / facts.round_trip_us.max(f64::MIN_POSITIVE);
    if let Some(judged) = Judged::by(network, Confidence::High, Rule::WireTime, wire_share, WIRE) {
        return Some(judged);
    }
    facts.server?;
    if wire.classified < FEW {
        return None;
    }
    // The server had the requests and used neither CPU nor storage, so it waited internally. Only the server could
    // report that it was for a lock.
    if let Some(judged) = Judged::by(locks, Confidence::Low, Rule::HeldRequests, wire.at_server, HELD) {
        // Either it worked, or it was sampled and reports that it did not wait for locks.
        let reported = facts.reported.as_ref().filter(|reported| reported.samples >= FEW_SAMPLES);
        let denied = reported.is_some_and(|reported| reported.locks < UNLOCKED);
        // A server that wrote may as well have waited for its log, which a fast disk shows in few samples.
        if rests && !denied && facts.disk.touched == Some(true) {
            return Some(Judged::new(Bottleneck::Unknown, Confidence::Low));
        }
        return Some(judged).filter(|_| rests && !denied);
    }
    // An answer that waits for its turn at a thread that clients share has left the server, as one in transit has.
    let at_work = (facts.client.cpu + facts.client.queue) / facts.threads;
    if facts.threads < facts.clients && at_work >= AT_WORK {
        return None;
    }
    let clear = wire.at_server <= 0.1 && wire.classified >= 2 * FEW && idle >= 0.7;
    let confidence = if clear { Confidence::High } else { Confidence::Low };
    Judged::by(network, confidence, Rule::InTransit, 1.0 - wire.at_server, TRANSIT)
}

/// Whether requests were at the server in most samples.
fn is_held(facts: &Facts) -> bool {
    facts.wire.is_some_and(|wire| wire.classified >= FEW && wire.at_server >= HELD)
}

fn disk(facts: &Facts, idle: f64) -> Option<Judged> {
    let disk = &facts.disk;
    if disk.touched == Some(false) {
        return None;
    }
    let sure = |sure: bool| if sure { Confidence::High } else { Confidence::Low };
    // The server's report is as good as samples of threads. With both, and waiting clients, confidence is high.
    if let Some(reported) = facts.reported.as_ref().filter(|reported| reported.samples >= FEW_SAMPLES) {
        let seen = disk.waiting >= 0.3 || disk.busy >= DISK_BUSY;
        let sure = sure(seen && idle >= IDLE && reported.samples >= FEW && disk.touched == Some(true));
        let judged = Judged::by(Bottleneck::Disk, sure, Rule::LogReported, reported.logs, LOCKED);
        if judged.is_some() {
            return judged;
        }
    }
    if idle < 0.3 {
        return None;
    }
    if disk.samples < 4 {
        // Too short for samples: the disk's own counter shows whether it was busy all the time.
        let busy = Judged::by(Bottleneck::Disk, Confidence::Low, Rule::DiskBusy, disk.busy, DISK_BUSY);
        return busy.filter(|_| disk.touched == Some(true));
    }
    let sure = sure(disk.waiting >= 0.6 && disk.samples >= FEW && disk.touched == Some(true));
    Judged::by(Bottleneck::Disk, sure, Rule::StorageSamples, disk.waiting, WAITED).or_else(|| {
        // The server had the requests all the time, and waited for storage in a part of it.
        let partly =
            Judged::by(Bottleneck::Disk, Confidence::Low, Rule::StorageSamples, disk.waiting, PARTLY);
        partly.filter(|_| disk.touched == Some(true) && is_held(facts))
    })
}
