//! The git commit of the working directory, for the run's record.

use kurabe_core::origin::GitCommit;
use std::process::{Command, Stdio};

/// Environment variables in which CI servers name the branch. They check out commits without a branch.
const BRANCH: [&str; 4] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME"];

/// The environment variables that git gets. Others may hold passwords.
const KEPT: [&str; 4] = ["PATH", "HOME", "GIT_DIR", "GIT_WORK_TREE"];

/// The commit of the repository that contains the working directory; `None` outside of one, without any commit, or
/// without git.
pub(crate) fn commit() -> Option<GitCommit> {
    let commit = git(&["rev-parse", "--verify", "HEAD"])?;
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let branch =
        git(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|| BRANCH.into_iter().find_map(set));
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    Some(GitCommit { commit, branch, dirty: changes.is_none_or(|changes| !changes.is_empty()) })
}

/// What git answers, without the last newline; `None` if it fails.
fn git(args: &[&str]) -> Option<String> {
    let kept = KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = Command::new("git");
    command.args(args).env_clear().envs(kept).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
