//! URLs on standard input. A word `-` in place of a URL, or of another secret, is the next line there: other accounts of the
//! machine can read the arguments of a process, and a URL may have a password.

use kurabe_core::text::without_mark;
use std::fs::File;
use std::io::{Error, Read as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};

/// The word in place of a secret.
const WORD: &str = "-";
/// The longest line that is read, in bytes.
const LONGEST: usize = 64 << 10;

/// What was read, in the order of the command line.
static READ: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The value of an argument: the next line of standard input for `-`.
pub(crate) fn value(word: &str) -> Result<String, String> {
    if word != WORD {
        return Ok(word.to_owned());
    }
    let failed = |error: Error| format!("standard input cannot be read: {error}");
    // A command that this program starts reads the rest.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST && !line.ends_with(b"\n") && input.read(&mut byte).map_err(failed)? > 0 {
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).map_err(|_| "standard input is no text".to_owned())?;
    let line = without_mark(&line).trim();
    if line.is_empty() {
        return Err("standard input has no line for it".to_owned());
    }
    READ.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    Ok(line.to_owned())
}

/// The words of the command line, with what was read in place of `-`.
pub(crate) fn words() -> Vec<String> {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    filled(std::env::args(), &read)
}

fn filled(words: impl Iterator<Item = String>, read: &[String]) -> Vec<String> {
    let (mut read, mut is_file) = (read.iter(), false);
    let fill = |word: String| {
        // There, it is the file of a result: standard output.
        let is_of_file =
            std::mem::replace(&mut is_file, word.starts_with("--export-") && !word.contains('='));
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
            _ => (String::new(), word.as_str()),
        };
        if value != WORD || is_of_file || option.starts_with("--export-") {
            return word;
        }
        read.next().map_or_else(|| word.clone(), |line| format!("{option}{line}"))
    };
    words.map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_command_has_the_urls_in_place_of_the_words() {
        let words =
            ["kurabe", "run", "kv", "-", "x:", "--export-json", "-", "--cache=-", "--export-markdown=-", "-"];
        let read = ["a:", "b:", "c:"].map(str::to_owned);
        assert_eq!(
            filled(words.iter().map(|word| (*word).to_owned()), &read),
            [
                "kurabe", "run", "kv", "a:", "x:", "--export-json", "-", "--cache=b:", "--export-markdown=-",
                "c:"
            ]
        );
        assert_eq!(value("sqlite:").as_deref(), Ok("sqlite:"));
    }
}
