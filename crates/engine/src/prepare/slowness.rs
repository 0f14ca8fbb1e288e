//! How slow this machine is now, for times that are announced: work whose end is not set takes longer on a slower one, and beside
//! other processes.

use crate::plan::Plan;
use crate::prepare::target::Target;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

/// Numbers that a thread writes as text and reads again.
const NUMBERS: u32 = 150_000;
/// The time that two threads take for it on the machine on which times of work were measured, with nothing else running.
const USUAL: Duration = Duration::from_micros(25_500);

/// How many times as long as the machine of the tests this one takes for work of a client and a server at the same time; 1 if all
/// work of the plan ends when its time is over.
pub(crate) fn slowness(plan: &Plan, targets: &[Target]) -> f64 {
    let ends_itself = plan.available().any(|(_, cell)| cell.is_job())
        || targets.iter().any(|target| target.pace.scanned_per_second.is_some());
    if !ends_itself {
        return 1.0;
    }
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(numbers);
        numbers();
    });
    (began.elapsed().as_secs_f64() / USUAL.as_secs_f64()).clamp(0.5, 4.0)
}

/// Work of branches and small copies, as that of a server. The standard library's is optimised in every build.
fn numbers() {
    let (mut text, mut number) = (String::new(), 1.0_f64);
    for _ in 0..NUMBERS {
        text.clear();
        let _ = write!(text, "{number}");
        number = 1.0 + text.parse::<f64>().unwrap_or(1.0) * 1.618_033_9 % 1e6;
    }
    std::hint::black_box(number);
}
