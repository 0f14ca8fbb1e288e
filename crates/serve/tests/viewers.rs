//! What the viewers of a running run cost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of a test are a test")]

#[path = "../../record/tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests of another crate need more of it")]
mod common;

use common::{end, header, trials};
use kurabe_record::Store;
use kurabe_serve::{Options, Page};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const VIEWERS: usize = 10;
/// The trials before the viewers come, and those that they see.
const BEFORE: u32 = 600;
const SEEN: u32 = 8;
const TOKEN: &str = "0123456789abcdef";

/// Nanoseconds of processor time of the page's threads so far.
fn page_ns() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let of_page = tasks.filter(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("page") || name.starts_with("tokio")
    });
    let used = of_page.map(|task| fs::read_to_string(task.path().join("schedstat")).unwrap_or_default());
    used.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum()
}

fn next_trial(lines: &mut impl Iterator<Item = String>) -> String {
    lines.find(|line| line == "event: trial").unwrap();
    lines.next().unwrap()
}

#[test]
fn ten_viewers_of_a_long_run_take_at_most_a_hundredth_of_a_processor() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("runs")).unwrap();
    // Other runs are in the list of runs, and nobody watches them.
    for nth in 0..50 {
        store.create(&header(&format!("other-{nth}"), nth)).unwrap().end(&end(true)).unwrap();
    }
    let mut writer = store.create(&header("watched", 100)).unwrap();
    let all = trials(BEFORE + SEEN);
    for trial in &all[..BEFORE as usize] {
        writer.trial(trial).unwrap();
    }
    let size = fs::metadata(&writer.path().file).unwrap().len();
    assert!(size > 1_000_000, "{size}");
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: Some(TOKEN.to_owned()),
        program: "/nonexistent".into(),
        targets: Vec::new(),
        any_target: false,
        hosts: Vec::new(),
        language: None,
    };
    let page = Page::open(options, store).unwrap();
    let (address, stop) = (page.address(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let serving = thread::Builder::new().name("page".to_owned()).spawn(move || page.serve(&stopped)).unwrap();
    let viewers: Vec<_> = (0..VIEWERS)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            let head = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
            write!(stream, "GET /runs/watched/events HTTP/1.1\r\n{head}\r\n").unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            BufReader::new(stream)
        })
        .collect();
    // Each has the past, and the last trial that its page may lack.
    let mut viewers: Vec<_> = viewers.into_iter().map(|viewer| viewer.lines().map(Result::unwrap)).collect();
    for viewer in &mut viewers {
        assert!(viewer.any(|line| line == "event: past"));
        next_trial(viewer);
    }
    let (began, before) = (Instant::now(), page_ns());
    for (nth, trial) in all[BEFORE as usize..].iter().enumerate() {
        let due = began + Duration::from_secs(1) * nth as u32;
        while Instant::now() < due {
            thread::sleep(Duration::from_millis(20));
        }
        writer.trial(trial).unwrap();
        for viewer in &mut viewers {
            let data = next_trial(viewer);
            assert!(data.contains("\"operation\":\"read\""), "{data}");
        }
    }
    let (wall, used) = (began.elapsed().as_secs_f64(), (page_ns() - before) as f64 / 1e9);
    println!(
        "{VIEWERS} viewers of a run file of {:.1} MB took {:.4} of a processor over {wall:.1} s",
        size as f64 / 1e6,
        used / wall
    );
    writer.end(&end(true)).unwrap();
    drop(writer);
    for viewer in &mut viewers {
        assert!(viewer.any(|line| line == "event: end"));
    }
    stop.store(true, Ordering::SeqCst);
    serving.join().unwrap().unwrap();
    assert!(used / wall <= 0.01, "{used} s of {wall} s");
}
