//! The porter: the thread that looks after what no client tells of. It gives up clients that are too slow, lets requests
//! in (and refuses those that are too many) while all workers are busy, and sees the last clients out.

use crate::clock;
use crate::conversation::Conversation;
use crate::crew::Office;
use crate::door::HANDFUL;
use crate::host::Host;
use crate::table::Seen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is looked whether to stop, and whether workers are free.
const LOOK: Duration = Duration::from_millis(20);
/// The same as long as no worker is.
const BUSY: Duration = Duration::from_millis(2);
/// The least and the longest time between looks for clients that are too slow.
const SWEEP: [Duration; 2] = [LOOK, Duration::from_millis(500)];
/// How long requests that are being answered may take once the application stops: longer than a database is waited for.
const GRACE: Duration = Duration::from_secs(15);

/// Looks after the house until `stop` is set and the last client has gone.
pub(crate) fn work(office: &Office, stop: &AtomicBool) {
    let mut host = Host::new(office);
    let mut news = Vec::with_capacity(HANDFUL);
    let options = &office.application.options;
    let rest = (options.head_time.min(options.idle_time) / 10).clamp(SWEEP[0], SWEEP[1]);
    let mut swept = Instant::now();
    let mut seen = 0;
    let mut pause = LOOK;
    while !stop.load(Ordering::Relaxed) {
        sleep(pause);
        let (idle, looks) = office.queue.watch();
        pause = if idle == 0 { BUSY } else { LOOK };
        // A worker that comes to the door lets in what there is; where none has come since the last look, nobody would.
        if idle == 0 && looks == seen {
            office.door.look(&mut news);
            host.receive(&news, true, false);
        }
        seen = looks;
        office.door.reopen();
        if swept.elapsed() >= rest {
            swept = Instant::now();
            sweep(office, &mut host);
        }
    }
    office.stopping.store(true, Ordering::Relaxed);
    office.door.lock();
    let until = Instant::now() + GRACE;
    while office.door.guests() > 0 && Instant::now() < until {
        // What has been asked is answered; then nobody is waited for.
        office.door.due(Conversation::listens, |mut conversation| {
            conversation.note(Seen::default());
            host.go_on(conversation);
        });
        sweep(office, &mut host);
        sleep(BUSY);
    }
}

fn sweep(office: &Office, host: &mut Host<'_>) {
    let now = clock::now();
    office.door.due(|conversation| conversation.overdue(now), |conversation| host.expire(conversation));
}
