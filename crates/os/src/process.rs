//! Processes and threads by number, as the kernel shows them (`proc_pid_stat(5)`).

use std::fs;

/// The used fields of a `stat` file, of a process or a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The program's name, of any characters.
    pub name: String,
    pub state: u8,
    /// The parent's number.
    pub parent: u32,
    /// Its own ticks of CPU, for a process including ended threads.
    pub ticks: u64,
    /// The part of them in user space, with that of its children.
    pub user_ticks: u64,
    /// Ticks of its ended children that were waited for.
    pub children_ticks: u64,
    /// The number of its threads, for a process.
    pub threads: u64,
    /// When it started, in ticks since the system did. No later process has the number and this time.
    pub began: u64,
}

impl Stat {
    /// The process of this number, also one that has ended and was not waited for; `None` if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The thread of this number of a process.
    pub fn of_thread(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
    }

    /// Whether the process has not ended.
    pub fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }

    /// The name is in parentheses and may contain any character, also parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let words: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
        // Field 3 of the manual page is the first here.
        let number = |field: usize| words.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name: text.get(open + 1..close)?.to_owned(),
            state: *words.first()?.as_bytes().first()?,
            parent: u32::try_from(number(4)?).ok()?,
            ticks: number(14)? + number(15)?,
            user_ticks: number(14)? + number(16)?,
            children_ticks: number(16)? + number(17)?,
            threads: number(20)?,
            began: number(22)?,
        })
    }
}

/// All processes, with their numbers.
pub fn all() -> Vec<(u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect()
}

/// All descendants of a process, without itself, parents first.
pub fn descendants(root: u32) -> Vec<u32> {
    let all = all();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(all.iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_contain_any_character() {
        let text = "12 (a) R (b c) S 7 1 1 0 -1 0 0 0 0 0 30 4 5 6 20 0 3 0 999 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) R (b c", b'S', 7));
        assert_eq!((stat.ticks, stat.children_ticks, stat.threads, stat.began), (34, 11, 3, 999));
        assert_eq!(Stat::parse("12 (a"), None);
    }

    #[test]
    fn child_descends_and_lives_until_it_ends() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(descendants(me).contains(&child.id()) && Stat::of(child.id()).unwrap().lives());
        child.kill().unwrap();
        let began = std::time::Instant::now();
        while Stat::of(child.id()).unwrap().lives() {
            assert!(began.elapsed().as_secs() < 60, "the process goes on");
        }
        child.wait().unwrap();
        assert_eq!(Stat::of(child.id()), None);
    }
}
