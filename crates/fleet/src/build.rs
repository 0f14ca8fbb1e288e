//! What a program was made of. Agents and their coordinator must plan the same transactions, so that they must be equal.
//!
//! A version number says too little: between two releases all commits have the same one. A release is built with the commit in
//! the variable `KURABE_COMMIT`, and its programs for several processors are equal. Any other program, and one of a changed
//! working tree (`…-dirty`), is equal to itself only: its file is compared, by a sum. So a build needs no git, and does not
//! repeat itself at each commit.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

/// The commit of a build that names one.
const COMMIT: Option<&str> = option_env!("KURABE_COMMIT");
/// The end of the name of a commit whose working tree was changed.
const DIRTY: &str = "-dirty";
/// The shortest name of a commit that identifies it.
const SHORTEST: usize = 12;
/// This program, even if its file was replaced by another version since.
const PROGRAM: &str = "/proc/self/exe";

/// What a program was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Build {
    /// The commit, which ends with `-dirty` if the working tree was changed; `None`: the build does not name one.
    pub commit: Option<String>,
    /// The length and the sum of the program's file; `None`: it cannot be read.
    pub file: Option<String>,
}

impl Build {
    /// Of this program.
    pub fn this() -> Self {
        static THIS: OnceLock<Build> = OnceLock::new();
        THIS.get_or_init(|| {
            let commit = COMMIT.map(str::trim).filter(|commit| !commit.is_empty()).map(str::to_owned);
            Self { commit, file: sum().ok() }
        })
        .clone()
    }

    /// Whether both are programs of one state of the source, as far as that is known. What is not known is not equal.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        same(&self.file, &other.file)
            || self.clean_commit().is_some() && self.clean_commit() == other.clean_commit()
    }

    /// The commit, if it says everything.
    fn clean_commit(&self) -> Option<&str> {
        self.commit.as_deref().filter(|commit| commit.len() >= SHORTEST && !commit.ends_with(DIRTY))
    }

    /// It, for people: `commit 0123456789ab`, or `file 168864496-1a2b3c4d`.
    pub fn shown(&self) -> String {
        let file = || format!("file {}", self.file.as_deref().unwrap_or("unknown"));
        match (&self.commit, self.clean_commit()) {
            (Some(commit), Some(_)) => format!("commit {commit}"),
            (Some(commit), None) => format!("commit {commit}, {}", file()),
            (None, _) => file(),
        }
    }
}

/// The length of the program's file, and its CRC-32.
fn sum() -> std::io::Result<String> {
    let (mut file, mut sum, mut length) = (File::open(PROGRAM)?, crc32fast::Hasher::new(), 0);
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(format!("{length}-{:08x}", sum.finalize())),
            read => {
                length += read;
                sum.update(&part[..read]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(commit: Option<&str>, file: Option<&str>) -> Build {
        Build { commit: commit.map(str::to_owned), file: file.map(str::to_owned) }
    }

    #[test]
    fn builds_of_different_commits_or_of_unknown_ones_are_different() {
        let (a, b) = ("0123456789abcdef", "fedcba9876543210");
        let of = |commit, file| build(Some(commit), Some(file));
        // Of one release, for two processors.
        assert!(of(a, "1").is_same(&of(a, "2")));
        assert!(!of(a, "1").is_same(&of(b, "2")));
        let dirty = format!("{a}-dirty");
        assert!(!of(&dirty, "1").is_same(&of(a, "2")) && !of(&dirty, "1").is_same(&of(&dirty, "2")));
        assert!(of(&dirty, "1").is_same(&of(&dirty, "1")));
        assert!(build(None, Some("1")).is_same(&build(None, Some("1"))));
        assert!(!build(None, Some("1")).is_same(&build(None, Some("2"))));
        assert!(!Build::default().is_same(&Build::default()), "nothing is known");
        assert!(!of("main", "1").is_same(&of("main", "2")), "a branch is no commit");
    }

    #[test]
    fn releases_are_built_with_their_commit() {
        let release = include_str!("../../../.github/workflows/release.yml");
        assert!(release.contains("KURABE_COMMIT: ${{ github.sha }}"));
    }

    #[test]
    fn this_program_is_the_same_as_itself() {
        let own = Build::this();
        assert!(own.is_same(&own) && own.file.is_some(), "{own:?}");
        let length = std::fs::metadata(PROGRAM).unwrap().len();
        assert!(own.file.unwrap().starts_with(&format!("{length}-")));
    }
}
