//! The options of a benchmark: `--name value`, and flags without one.

use std::path::PathBuf;

use crate::Outcome;

/// Parses the text of a value.
pub trait Value: Sized {
    /// A flag takes no value.
    const FLAG: bool = false;

    fn of(text: &str) -> Result<Self, String>;
}

/// The destination of a value.
pub trait Place {
    fn is_flag(&self) -> bool;
    fn put(&mut self, text: &str) -> Outcome;
}

impl<T: Value> Place for T {
    fn is_flag(&self) -> bool {
        T::FLAG
    }

    fn put(&mut self, text: &str) -> Outcome {
        *self = T::of(text)?;
        Ok(())
    }
}

/// Stores each value in its destination.
pub fn read(args: &[String], known: &mut [(&str, &mut dyn Place)]) -> Outcome {
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let Some((_, place)) = known.iter_mut().find(|(known, _)| known == name) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!("no option {name}: {}", names.join(", ")));
        };
        let value = if place.is_flag() { Some("") } else { words.next().map(String::as_str) };
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        place.put(value).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

impl Value for bool {
    const FLAG: bool = true;

    fn of(_: &str) -> Result<Self, String> {
        Ok(true)
    }
}

impl Value for u64 {
    fn of(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("'{text}' is not a positive integer"))
    }
}

impl Value for u32 {
    fn of(text: &str) -> Result<Self, String> {
        Self::try_from(u64::of(text)?).map_err(|_| format!("{text} is too many"))
    }
}

impl Value for usize {
    fn of(text: &str) -> Result<Self, String> {
        Self::try_from(u64::of(text)?).map_err(|_| format!("{text} is too many"))
    }
}

impl Value for String {
    fn of(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for PathBuf {
    fn of(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
}

impl<T: Value> Value for Option<T> {
    fn of(text: &str) -> Result<Self, String> {
        T::of(text).map(Some)
    }
}

/// Splits at commas; an empty text gives no values.
impl<T: Value> Value for Vec<T> {
    fn of(text: &str) -> Result<Self, String> {
        text.split(',').filter(|part| !part.is_empty()).map(T::of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_invalid_ones_rejected() {
        let take = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let (mut rounds, mut names, mut brief, mut counts) =
                (5_usize, None::<Vec<String>>, false, vec![1_u32]);
            let mut known: [(&str, &mut dyn Place); 4] = [
                ("--rounds", &mut rounds),
                ("--names", &mut names),
                ("--brief", &mut brief),
                ("--counts", &mut counts),
            ];
            read(&args, &mut known).map(|()| (rounds, names, brief, counts))
        };
        assert_eq!(take(&[]), Ok((5, None, false, vec![1])));
        let names = Some(vec!["a".to_owned(), "b".to_owned()]);
        let given = ["--brief", "--names", "a,b", "--rounds", "7", "--counts", ""];
        assert_eq!(take(&given), Ok((7, names, true, vec![])));
        for (args, why) in [
            (["--rounds", "0"].as_slice(), "--rounds: '0' is not a positive integer"),
            (&["--counts", "1,x"], "--counts: 'x' is not a positive integer"),
            (&["--counts", "5000000000"], "--counts: 5000000000 is too many"),
            (&["--names"], "--names needs a value"),
            (&["--pages", "3"], "no option --pages: --rounds, --names, --brief, --counts"),
        ] {
            assert_eq!(take(args), Err(why.to_owned()));
        }
    }
}
