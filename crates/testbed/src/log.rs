//! The end of a server's log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const LINES: usize = 15;
const BYTES: u64 = 6000;

/// The last lines of a log, with the password removed; empty if there are none.
pub(crate) fn tail(path: &Path, password: Option<&str>) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    // After a wrong option, a program reports it and then prints its usage.
    let reported = text.lines().take_while(|line| !line.starts_with("Usage of "));
    let lines: Vec<&str> = reported.filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    match password {
        Some(password) if !password.is_empty() => last.replace(password, "***"),
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_short_and_contains_no_password() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..50).map(|n| format!("line {n} secret")).collect();
        std::fs::write(file.path(), lines.join("\n\n")).unwrap();
        let tail = tail(file.path(), Some("secret"));
        assert_eq!(tail.lines().count(), LINES);
        assert!(tail.ends_with("line 49 ***"), "{tail}");
    }

    #[test]
    fn usage_text_of_program_is_omitted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no such option: -x\nUsage of a:\n  -y\n\tsomething\n").unwrap();
        assert_eq!(tail(file.path(), None), "no such option: -x");
    }

    #[test]
    fn missing_log_has_no_tail() {
        assert_eq!(tail(Path::new("/nonexistent"), None), "");
    }
}
