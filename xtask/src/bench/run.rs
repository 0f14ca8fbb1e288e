//! What benchmarks share: Kurabe's program, the spread of figures, and facts of the machine.

use std::fmt;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::shell::{self, Outcome};

/// Kurabe's program, and a folder for its runs and for files of other tools, which is removed with this value.
pub struct Kurabe {
    pub program: PathBuf,
    pub scratch: PathBuf,
}

/// Makes a folder for temporary files that nobody else may enter. One that is there is another account's, or a link.
pub(super) fn scratch(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("kurabe-{name}-{}", std::process::id()));
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map(|()| folder.clone()).map_err(|error| format!("{}: {error}", folder.display()))
}

impl Kurabe {
    /// Builds the program. `name` is that of the benchmark.
    pub fn build(name: &str) -> Result<Self, String> {
        Ok(Self { program: program()?, scratch: scratch(name)? })
    }

    /// A shell that executes a command, on one processor if one is given.
    pub fn shell(&self, processor: Option<&str>, command: &str) -> Command {
        let mut shell = Command::new(processor.map_or("sh", |_| "taskset"));
        if let Some(processor) = processor {
            shell.args(["-c", processor, "sh"]);
        }
        shell.args(["-c", command]).env("KURABE", &self.program).env("SCRATCH", &self.scratch);
        shell.env("KURABE_RUNS", self.scratch.join("runs")).stdin(Stdio::null());
        shell
    }

    /// A command of Kurabe.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KURABE_RUNS", self.scratch.join("runs")).stdin(Stdio::null());
        command
    }

    /// The newest run's report.
    pub fn report(&self, format: &str) -> Result<String, String> {
        shell::run(self.command().args(["report", "--format", format]), "kurabe report")
    }
}

pub fn cargo(args: &[&str]) -> Outcome {
    let status = shell::cargo().args(args).status().map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} ended with {status}", args.join(" "))) }
}

/// Kurabe's program, newly built; or the one that `KURABE_PROGRAM` names, if building would disturb other work.
pub fn program() -> Result<PathBuf, String> {
    if let Some(built) = std::env::var_os("KURABE_PROGRAM") {
        return Ok(PathBuf::from(built));
    }
    cargo(&["build", "--release", "--package", "kurabe", "--features", "full"])?;
    Ok(shell::target_folder().join("release/kurabe"))
}

impl Drop for Kurabe {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// Of each verdict about a primary metric in a report as JSON, whether it calls one target better. The report is our own
/// format: one `result` for each verdict, on a separate line, after whether the metric is primary.
pub fn primary_results(report: &str) -> Result<Vec<bool>, String> {
    let (mut primary, mut results) = (false, Vec::new());
    for line in report.lines().map(str::trim) {
        match line.split_once(':') {
            Some(("\"primary\"", value)) => primary = value.contains("true"),
            Some(("\"result\"", value)) if primary => {
                results.push(value.contains("better") || value.contains("worse"));
            }
            _ => {}
        }
    }
    if results.is_empty() { Err("a report without a verdict".to_owned()) } else { Ok(results) }
}

/// Whether a program is installed; if not, which package has it.
pub fn need(name: &str, package: &str) -> Outcome {
    if shell::on_path(name) {
        return Ok(());
    }
    Err(format!("{name} is not installed; to get it: apt-get install {package}"))
}

/// Minimum, median and maximum.
#[derive(Clone, Copy)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first().copied(), values.last().copied()) else {
            return Self { min: f64::NAN, median: f64::NAN, max: f64::NAN };
        };
        let half = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
        Self { min, median, max }
    }

    pub fn of_pairs<T>(pairs: &[T], figure: impl Fn(&T) -> f64) -> Self {
        Self::of(pairs.iter().map(figure))
    }
}

/// `median (min–max)`, with as many decimals as the format says.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$}–{:.digits$})", self.median, self.min, self.max)
    }
}

/// The 95 % interval of a median, between two of the ordered values, equally many from either end, by the sign test: each
/// value is above the true median as often as below it, for any distribution. `None` for fewer than six values.
pub fn interval(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    // The probability that at most this many of n fall on one side.
    let (mut chance, mut term, mut outside) = (0.0, 0.5_f64.powi(i32::try_from(n).ok()?), 0);
    while outside < n / 2 {
        chance += term;
        if 2.0 * chance > 0.05 {
            break;
        }
        term *= (n - outside) as f64 / (outside + 1) as f64;
        outside += 1;
    }
    (outside > 0).then(|| (values[outside - 1], values[n - outside]))
}

/// The end of a benchmark: an error with what went wrong, or was beyond what is allowed.
pub fn end(problems: &[String]) -> Outcome {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

pub fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let processors = processors();
    let model = model.map_or("unknown processor", |(_, model)| model);
    // `6.18.44-custom`: a distribution's build number does not affect speed.
    let release = said("uname", &["-r"]);
    let release = release.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    format!("{model}, {processors} processors, Linux {release}")
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub fn said(program: &str, args: &[&str]) -> String {
    shell::run(Command::new(program).args(args), program).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verdicts_about_primary_metrics_count() {
        let report = "{\n\"primary\": true,\n\"result\": \"undecided\",\n\"primary\": true,\n\"result\": \"better\",\n\
                      \"primary\": false,\n\"result\": \"worse\",\n";
        assert_eq!(primary_results(report), Ok(vec![false, true]));
        assert!(primary_results("{}").is_err());
    }

    #[test]
    fn spread_of_pairs_is_taken_within_each_pair() {
        let pairs = [(1.0, 0.5), (2.0, 1.0), (2.0, 1.5)];
        let ratio = Spread::of_pairs(&pairs, |(theirs, ours)| ours / theirs);
        assert_eq!(format!("{ratio:.2}"), "0.50 (0.50–0.75)");
        assert_eq!(format!("{:.1}", Spread::of([4.0, 1.0].into_iter())), "2.5 (1.0–4.0)");
        assert!(Spread::of(std::iter::empty()).median.is_nan());
    }

    #[test]
    fn interval_is_that_of_sign_test() {
        // Of eleven values the second and the tenth contain the median with 98.8 %; the third and the ninth would
        // with 93.5 %.
        assert_eq!(interval((1..=11).rev().map(f64::from)), Some((2.0, 10.0)));
        assert_eq!(interval((1..=20).map(f64::from)), Some((6.0, 15.0)));
        assert_eq!(interval((1..=6).map(f64::from)), Some((1.0, 6.0)));
        assert_eq!(interval((1..=5).map(f64::from)), None);
    }
}
