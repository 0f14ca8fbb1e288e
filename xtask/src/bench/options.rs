//! The options of a benchmark: `--name value`, each a variable of its description, with a default.

/// The variables, by the names of their options.
pub struct Variables(Vec<(&'static str, String)>);

impl Variables {
    /// Reads options. Each has a default, by which one knows it.
    pub fn read(args: &[String], defaults: &[(&'static str, &str)]) -> Result<Self, String> {
        let mut all: Vec<(&'static str, String)> =
            defaults.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        for pair in args.chunks(2) {
            let place = all.iter_mut().find(|(name, _)| pair[0].strip_prefix("--") == Some(name));
            let Some((name, place)) = place else {
                let names: Vec<String> = defaults.iter().map(|(name, _)| format!("--{name}")).collect();
                return Err(format!("no option {}: {}", pair[0], names.join(", ")));
            };
            place.clone_from(pair.get(1).ok_or_else(|| format!("--{name} needs a value"))?);
        }
        Ok(Self(all))
    }

    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The parts of a list with commas.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name).split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// A positive integer.
    pub fn number(&self, name: &str) -> Result<u32, String> {
        number(name, self.get(name))
    }

    pub fn numbers(&self, name: &str) -> Result<Vec<u32>, String> {
        self.list(name).iter().map(|text| number(name, text)).collect()
    }
}

fn number(name: &str, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("--{name}: '{text}' is not a positive integer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_invalid_ones_rejected() {
        let take = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let read = Variables::read(&args, &[("rounds", "5"), ("names", "c"), ("counts", "1")])?;
            Ok((read.number("rounds")?, read.list("names"), read.numbers("counts")?))
        };
        assert_eq!(take(&[]), Ok((5, vec!["c".to_owned()], vec![1])));
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(take(&["--names", "a,b", "--rounds", "7", "--counts", ""]), Ok((7, names, vec![])));
        for (args, why) in [
            (["--rounds", "0"].as_slice(), "--rounds: '0' is not a positive integer"),
            (&["--counts", "1,x"], "--counts: 'x' is not a positive integer"),
            (&["--names"], "--names needs a value"),
            (&["--pages", "3"], "no option --pages: --rounds, --names, --counts"),
        ] {
            assert_eq!(take(args), Err(why.to_owned()));
        }
    }
}
