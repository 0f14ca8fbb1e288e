//! The command line.

use std::path::PathBuf;

/// The text of `--help`.
pub const HELP: &str = "kurabe-attack --program PATH [OPTIONS]

Attacks a kurabe program and counts what it survives. `cargo xtask attack` builds it and this, and runs both.

  --program PATH    the program under attack
  --quick           300 attacks in some minutes, instead of 5,000 in 40
  --only NAMES      these families, or kinds of them: liar,tarpit/drip
  --target NAMES    these targets: postgres,redis
  --tries N         tries of each line of the table [default: depends on the family]
  --seed N          the seed, which reproduces an attack [default: from the clock]
  --list            lists the lines of the table, without an attack";

/// The parsed options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The program under attack.
    pub program: PathBuf,
    /// Few attacks.
    pub quick: bool,
    /// Only these families or kinds; all if empty.
    pub only: Vec<String>,
    /// Only these targets; all if empty.
    pub target: Vec<String>,
    /// Tries of each case.
    pub tries: Option<usize>,
    pub seed: Option<u64>,
    pub list: bool,
}

impl Options {
    /// Parses a command line without the program's name.
    ///
    /// # Errors
    /// If an option is unknown or has no value.
    pub fn read(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} needs a value"));
            let names = |text: String| text.split(',').map(str::to_owned).collect();
            let number =
                |text: String| text.parse::<u64>().map_err(|_| format!("{word}: '{text}' is not a number"));
            match word.as_str() {
                "--program" => options.program = value()?.into(),
                "--quick" => options.quick = true,
                "--only" => options.only = names(value()?),
                "--target" => options.target = names(value()?),
                "--tries" => options.tries = Some(number(value()?)? as usize),
                "--seed" => options.seed = Some(number(value()?)?),
                "--list" => options.list = true,
                "--help" | "-h" => return Err(HELP.to_owned()),
                other => return Err(format!("no option {other}\n\n{HELP}")),
            }
        }
        if options.program.as_os_str().is_empty() {
            return Err(format!("--program is missing\n\n{HELP}"));
        }
        Ok(options)
    }

    /// Whether a case was selected.
    pub fn wants(&self, family: &str, kind: &str, target: &str) -> bool {
        let name = format!("{family}/{kind}");
        let only = self.only.is_empty() || self.only.iter().any(|only| only == family || *only == name);
        only && (self.target.is_empty() || self.target.iter().any(|wanted| wanted == target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options, String> {
        Options::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_select_cases_by_family_kind_and_target() {
        let options = read(&["--program", "k", "--only", "liar,tarpit/drip", "--target", "redis"]).unwrap();
        assert!(options.wants("liar", "drop", "redis") && options.wants("tarpit", "drip", "redis"));
        assert!(!options.wants("tarpit", "silent", "redis") && !options.wants("liar", "drop", "mysql"));
        assert!(read(&["--program", "k"]).unwrap().wants("kill", "server", "redis"));
    }

    #[test]
    fn unknown_options_and_missing_values_are_rejected() {
        assert!(read(&["--program", "k", "--blub"]).unwrap_err().contains("--blub"));
        assert!(read(&["--program", "k", "--tries"]).unwrap_err().contains("needs a value"));
        assert!(read(&["--quick"]).unwrap_err().contains("--program"));
    }
}
