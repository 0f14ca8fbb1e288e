//! What a statement may change, by the words in `side_effects.txt` and the functions in `functions.txt`.

use super::lexer::{Dialect, Kind, Token};
use super::statement::Statement;

/// The entries of `side_effects.txt`: where they count, and their words.
fn entries(place: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("side_effects.txt").lines();
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    lines.map(words).filter_map(move |words| {
        let (first, rest) = words.split_first()?;
        (*first == place).then(|| rest.to_vec())
    })
}

/// Functions of the engines that compute a result or report a state, and change nothing.
fn is_known(function: &str) -> bool {
    let lines = include_str!("functions.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).any(|known| known.eq_ignore_ascii_case(function))
}

/// The first words of statements.
pub fn verbs() -> Vec<&'static str> {
    entries("statement").flatten().collect()
}

/// The reason to refuse several statements in one text.
const SEVERAL: &str = "it is more than one statement";

/// Whether it is more than one statement. Only PostgreSQL executes several that are sent as one: what looks like several
/// in the way of another engine, as `E'it\'s; one'` does, is refused by that engine, whose sessions do not allow several.
pub fn are_several(text: &str, dialects: &[Dialect]) -> Option<String> {
    let is_several = |dialect: &Dialect| Statement::read(text, *dialect).is_several();
    let found = dialects.iter().any(|dialect| dialect.is_postgres() && is_several(dialect))
        || dialects.iter().all(is_several);
    found.then(|| SEVERAL.to_owned())
}

/// How the names of character sets begin in which no other character has the byte of a quote or a backslash.
/// That of `DEFAULT` is the server's, and may be another.
const PLAIN_SETS: [&str; 10] =
    ["ascii", "binary", "cp125", "iso", "koi8", "latin", "sql_ascii", "unicode", "utf", "win125"];

impl Statement<'_> {
    /// Whether a `;` divides it.
    fn is_several(&self) -> bool {
        let mut rest = self.tokens().iter().rev().skip_while(|token| token.is_mark(';'));
        rest.any(|token| token.is_mark(';'))
    }

    /// Whether the words are here, as words or names.
    fn names(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| {
            let name = self.tokens().get(at + n).and_then(Token::name);
            name.is_some_and(|name| name.eq_ignore_ascii_case(word))
        })
    }

    /// Whether it only reads, as far as its words say.
    pub fn reads(&self) -> bool {
        self.asks_for_write().is_none()
    }

    /// Why a session that only reads does not stop all that it may change; `None` if it does.
    pub fn asks_for_write(&self) -> Option<String> {
        if self.is_empty() {
            // A ping of some drivers.
            return None;
        }
        let tokens = self.tokens();
        let first = tokens.iter().position(|token| !token.is_mark('(')).unwrap_or(tokens.len());
        if self.first().is_none() || !entries("begins").any(|words| self.names(first, &words)) {
            let word = self.first().map_or_else(|| "it".to_owned(), str::to_uppercase);
            return Some(format!("{word} is not a query"));
        }
        // A block of MariaDB, which executes its statements where a session allows one at a time too.
        if self.names(first, &["begin"]) && self.is_several() {
            return Some(SEVERAL.to_owned());
        }
        let verbs: Vec<&str> = entries("verb").flatten().collect();
        for (at, token) in tokens.iter().enumerate().skip(first) {
            let beside = self.before(at).is_some_and(|before| before.is_mark('(') || before.is_mark(')'));
            let called = tokens.get(at + 1).is_some_and(|next| next.is_mark('('));
            if beside && !called && token.is_one_of(&verbs) {
                return Some("a part of it writes".to_owned());
            }
        }
        self.lets_through()
    }

    /// Whether this part of a SET gives the session's texts a character set in which a quote or a backslash may be a part of a
    /// character: a text that is read here as one is another one there.
    fn hides_quotes(&self, at: usize) -> bool {
        let names = |words: &[&str]| self.names(at, words);
        let (after, is_setting) = match () {
            () if names(&["names"]) || names(&["charset"]) => (at + 1, false),
            () if names(&["character", "set"]) => (at + 2, false),
            () if names(&["character_set_client"]) || names(&["client_encoding"]) => (at + 1, true),
            () => return false,
        };
        let rest = self.tokens().get(after..).unwrap_or_default();
        let is_sign = |token: &&Token<'_>| token.is_mark(':') || token.is_mark('=') || token.is("to");
        let signs = rest.iter().take_while(is_sign).count();
        let value = rest.get(signs).map_or("", |token| token.text.trim_matches(['\'', '"', '`']));
        let value = value.to_ascii_lowercase();
        (signs > 0 || !is_setting) && !PLAIN_SETS.iter().any(|plain| value.starts_with(plain))
    }

    /// What no read-only transaction stops, and what makes a session write again.
    pub fn lets_through(&self) -> Option<String> {
        let sets = self.begins(&["set"]);
        for (at, token) in self.tokens().iter().enumerate() {
            if let Some(words) = entries("set").filter(|_| sets).find(|words| self.names(at, words)) {
                return Some(format!(
                    "it sets more than its own session has ({})",
                    words.join(" ").to_uppercase()
                ));
            }
            if sets && self.hides_quotes(at) {
                return Some("it sets a character set in which quotes may be parts of characters".to_owned());
            }
            if let Some(words) = entries("has").find(|words| self.names(at, words)) {
                return Some(format!("no read-only transaction stops {}", words.join(" ").to_uppercase()));
            }
            // A name of PostgreSQL with escapes that hide its words: U&"\0070g_…".
            let rest = self.tokens().get(at + 1..).unwrap_or_default();
            if token.is("u")
                && let [and, name, ..] = rest
                && and.is_mark('&')
                && name.name().is_some()
            {
                return Some("it has a name with Unicode escapes".to_owned());
            }
        }
        None
    }

    /// Why it may change something by a word before a parenthesis that is neither a known function nor a word of the language, nor
    /// this table.
    pub fn calls_unknown(&self, table: &str) -> Option<String> {
        let tokens = self.tokens();
        let words: Vec<&str> = entries("word").flatten().collect();
        let mut called = tokens
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair.last().is_some_and(|next| next.is_mark('(')));
        called.find_map(|(at, pair)| {
            let token = pair.first()?;
            let name = token.name()?.to_lowercase();
            // The type of a cast, and a name with columns.
            let named = self
                .before(at)
                .is_some_and(|before| before.is_mark(':') || before.is_one_of(&["as", "with", "recursive"]));
            let is_word = token.kind == Kind::Word && token.is_one_of(&words);
            (!named && !is_word && name != table && !is_known(&name))
                .then(|| format!("it calls {name}, which is not known to only read"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_counts_somewhere() {
        let places = ["begins", "verb", "set", "has", "word", "statement"];
        for line in include_str!("side_effects.txt").lines().filter(|line| !line.starts_with('#')) {
            let (place, words) = line.split_once(' ').unwrap();
            assert!(places.contains(&place) && !words.is_empty() && words == words.to_lowercase(), "{line}");
        }
    }

    #[test]
    fn statement_that_reads_is_known_by_its_words() {
        let reads = |text: &str| Statement::read(text, Dialect::POSTGRES).reads();
        assert!(reads("SELECT 'delete' FROM t") && reads("WITH a AS (SELECT 1) SELECT * FROM a"));
        assert!(
            !reads("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a") && !reads("SELECT nextval('s')")
        );
    }
}
