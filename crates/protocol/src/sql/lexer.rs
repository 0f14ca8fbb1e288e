//! The tokens of a text of SQL. Their texts, one after the other, are the text.

/// How an engine writes texts, names and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of its own, and they combine")]
pub struct Dialect {
    /// A backslash escapes a quote.
    backslash: bool,
    /// `#` begins a comment, `--` only before a space, `/*!` and `/*+` are executed, and `"` encloses texts.
    mysql: bool,
    /// `"` encloses names in MySQL too.
    ansi_quotes: bool,
    /// `$tag$ … $tag$` and `E'…\'…'` are texts, `$1` is a parameter, and comments nest.
    postgres: bool,
    /// `q'{…}'` is a text.
    alternative: bool,
    /// `[…]` is a name.
    brackets: bool,
    /// A comment in which another one does not end does not nest.
    lenient: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        PLAIN
    }
}

const PLAIN: Dialect = Dialect {
    backslash: false,
    mysql: false,
    ansi_quotes: false,
    postgres: false,
    alternative: false,
    brackets: false,
    lenient: false,
};

/// The ways in which sessions of PostgreSQL read a text, by `standard_conforming_strings`.
const POSTGRES: [Dialect; 2] = [Dialect::POSTGRES, Dialect { backslash: true, ..Dialect::POSTGRES }];
/// The ways in which sessions of MySQL and MariaDB read a text, by `sql_mode`.
const MYSQL: [Dialect; 6] = [
    Dialect::MYSQL_PLAIN,
    Dialect::MYSQL,
    Dialect { ansi_quotes: true, ..Dialect::MYSQL_PLAIN },
    Dialect { ansi_quotes: true, ..Dialect::MYSQL },
    Dialect { ansi_quotes: true, brackets: true, ..Dialect::MYSQL_PLAIN },
    Dialect { ansi_quotes: true, brackets: true, ..Dialect::MYSQL },
];
const ALL: [Dialect; 10] = {
    let ([on, off], [a, b, c, d, e, f]) = (POSTGRES, MYSQL);
    [on, off, a, b, c, d, e, f, Dialect::SQLITE, Dialect::ORACLE]
};

/// Modes of MySQL and MariaDB which contain `ANSI_QUOTES`.
const WITH_ANSI_QUOTES: [&str; 7] = ["ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];

impl Dialect {
    /// Standard SQL, with `?` for parameters.
    pub const STANDARD: Self = PLAIN;
    pub const POSTGRES: Self = Self { postgres: true, ..PLAIN };
    pub const MYSQL: Self = Self { mysql: true, backslash: true, ..PLAIN };
    /// MySQL with `NO_BACKSLASH_ESCAPES`.
    pub const MYSQL_PLAIN: Self = Self { mysql: true, ..PLAIN };
    pub const SQLITE: Self = Self { brackets: true, ..PLAIN };
    pub const ORACLE: Self = Self { alternative: true, ..PLAIN };
    /// A text that is written for any engine.
    pub const ANY: Self = Self { lenient: true, ..Self::POSTGRES };

    /// The way in which a session with this setting reads a text.
    #[must_use]
    pub fn under(self, setting: &str, value: &str) -> Self {
        let has = |mode: &str| value.split(',').any(|one| one.eq_ignore_ascii_case(mode));
        match setting {
            "sql_mode" if self.mysql => Self {
                backslash: !has("NO_BACKSLASH_ESCAPES"),
                ansi_quotes: WITH_ANSI_QUOTES.into_iter().any(has),
                brackets: has("MSSQL"),
                ..self
            },
            "standard_conforming_strings" if self.postgres => Self { backslash: value == "off", ..self },
            _ => self,
        }
    }

    /// The ways in which the engine with this keyword may read a text; without one, all ways of all engines.
    pub fn all_of(engine: Option<&str>) -> &'static [Self] {
        match engine {
            Some("postgres" | "postgresql") => &POSTGRES,
            Some("mysql" | "mariadb") => &MYSQL,
            Some("sqlite") => &[Self::SQLITE],
            Some("oracle") => &[Self::ORACLE],
            _ => &ALL,
        }
    }

    pub fn is_postgres(self) -> bool {
        self.postgres
    }

    pub fn has_backslash(self) -> bool {
        self.backslash
    }

    /// Whether it is one of MySQL's.
    pub fn is_mysql(self) -> bool {
        self.mysql
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Space,
    Comment,
    /// The beginning or the end of a comment that is executed: `/*!50000`, `*/`.
    Executed,
    Word,
    /// A name within quotes.
    Name,
    /// A text with its quotes and its prefix.
    Text,
    Number,
    /// `$1` or `?`.
    Parameter,
    /// Any other character.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
}

impl<'a> Token<'a> {
    /// Whether it is this word, in letters of any case and without quotes.
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is one of these words.
    pub fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark && self.text.starts_with(mark)
    }

    /// Whether it says nothing: a space, a comment, or the sign of one that is executed.
    pub fn is_blank(&self) -> bool {
        matches!(self.kind, Kind::Space | Kind::Comment | Kind::Executed)
    }

    /// The word or name, without quotes; also a text in double quotes, which may be a name.
    pub fn name(&self) -> Option<&'a str> {
        match self.kind {
            Kind::Word => Some(self.text),
            Kind::Name => Some(inner(self.text)),
            Kind::Text if self.text.starts_with('"') => Some(inner(self.text)),
            _ => None,
        }
    }
}

/// A text without the quotes around it.
fn inner(text: &str) -> &str {
    let mut chars = text.chars();
    let (first, last) = (chars.next(), chars.next_back());
    let closes = last.is_some_and(|last| first == Some(last) || (first == Some('[') && last == ']'));
    let rest = first.and_then(|first| text.strip_prefix(first)).unwrap_or_default();
    if closes { rest.get(..rest.len() - 1).unwrap_or(rest) } else { rest }
}

pub fn tokens(text: &str, dialect: Dialect) -> Tokens<'_> {
    Tokens { rest: text, dialect, continues: Continues::No, before: Kind::Space, executed: 0 }
}

/// Reads tokens. It allocates nothing.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    rest: &'a str,
    dialect: Dialect,
    continues: Continues,
    before: Kind,
    /// The executed comments that have not ended.
    executed: u32,
}

/// Whether a text after the next line end goes on with one that has escapes: `E'a'`, a line end, `'\''`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continues {
    No,
    AfterText,
    AfterLine,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let (kind, length) = self.first()?;
        let (text, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.continues = match (self.continues, kind) {
            (_, Kind::Text) if self.escapes(text) && self.dialect.postgres => Continues::AfterText,
            (Continues::AfterText, Kind::Space) if text.contains(['\n', '\r']) => Continues::AfterLine,
            (known, Kind::Space | Kind::Comment) => known,
            _ => Continues::No,
        };
        self.executed = match (kind, text) {
            (Kind::Executed, "*/") => self.executed.saturating_sub(1),
            (Kind::Executed, _) => self.executed + 1,
            _ => self.executed,
        };
        self.before = kind;
        self.rest = rest;
        Some(Token { kind, text })
    }
}

impl Tokens<'_> {
    /// Whether a backslash escapes a quote in this text.
    fn escapes(&self, text: &str) -> bool {
        let has_sign = self.dialect.postgres && text.starts_with(['e', 'E']);
        let goes_on = self.continues == Continues::AfterLine && text.starts_with('\'');
        self.dialect.backslash || has_sign || goes_on
    }

    /// The kind of the next token, and its length in bytes.
    fn first(&self) -> Option<(Kind, usize)> {
        let (rest, dialect) = (self.rest, self.dialect);
        let first = rest.chars().next()?;
        let bytes = rest.as_bytes();
        let found = match bytes {
            [b'\'', ..] => (Kind::Text, quoted(rest, 0, self.escapes(rest))),
            [b'"', ..] if dialect.mysql && !dialect.ansi_quotes => {
                (Kind::Text, quoted(rest, 0, dialect.backslash))
            }
            [b'"', ..] => (Kind::Name, quoted(rest, 0, false)),
            [b'`', ..] if !dialect.postgres || dialect.lenient => (Kind::Name, quoted(rest, 0, false)),
            [b'[', ..] if dialect.brackets && rest.contains(']') => {
                (Kind::Name, rest.find(']').map_or(1, |at| at + 1))
            }
            [b'#', ..] if dialect.mysql => (Kind::Comment, line(rest)),
            [b'-', b'-', next @ ..] if !dialect.mysql || next.first().is_none_or(|next| *next <= b' ') => {
                (Kind::Comment, line(rest))
            }
            [b'/', b'*', b'!' | b'+', ..] if dialect.mysql => (Kind::Executed, 3 + digits(&rest[3..])),
            [b'/', b'*', b'M', b'!', ..] if dialect.mysql => (Kind::Executed, 4 + digits(&rest[4..])),
            [b'*', b'/', ..] if self.executed > 0 => (Kind::Executed, 2),
            [b'/', b'*', ..] => {
                let plain = || block(rest, false).filter(|_| dialect.lenient);
                (Kind::Comment, block(rest, dialect.postgres).or_else(plain).unwrap_or(rest.len()))
            }
            [b'$', next, ..] if dialect.postgres && next.is_ascii_digit() => {
                (Kind::Parameter, 1 + digits(&rest[1..]))
            }
            [b'$', ..] if dialect.postgres => match dollar(rest) {
                Some(length) => (Kind::Text, length),
                None => (Kind::Mark, 1),
            },
            [b'?', ..] if !dialect.postgres => (Kind::Parameter, 1),
            [b'0'..=b'9', ..] => (Kind::Number, number(rest)),
            // Behind a name it divides that from another.
            [b'.', b'0'..=b'9', ..] if !matches!(self.before, Kind::Word | Kind::Name | Kind::Number) => {
                (Kind::Number, number(rest))
            }
            [byte, ..] if is_space(*byte) => {
                (Kind::Space, bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len()))
            }
            _ if first.is_ascii_alphabetic() || first == '_' || !first.is_ascii() => {
                let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(length);
                if after.starts_with('\'')
                    && let Some(text) = self.prefixed(word)
                {
                    return Some((Kind::Text, text));
                }
                (Kind::Word, length)
            }
            _ => (Kind::Mark, first.len_utf8()),
        };
        Some(found)
    }

    /// The length of a text with this prefix, if it is one.
    fn prefixed(&self, word: &str) -> Option<usize> {
        let (rest, dialect) = (self.rest, self.dialect);
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        if dialect.alternative && is(&["q", "nq"]) {
            return Some(word.len() + alternative(rest.get(word.len()..)?));
        }
        let is_prefix = is(&["x", "b", "n"]) || dialect.postgres && is(&["e"]);
        is_prefix.then(|| quoted(rest, word.len(), self.escapes(rest)))
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The length of a line without its end.
fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// The length of a number. Letters behind a whole number are taken for a part of it; behind a fraction a word begins.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let many = |from: usize, is: fn(u8) -> bool| {
        bytes.get(from..).unwrap_or_default().iter().take_while(|byte| is(**byte)).count()
    };
    let digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
    if let [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..] = bytes {
        return many(0, letter);
    }
    let mut end = many(0, digit);
    let has_fraction = bytes.get(end) == Some(&b'.') && bytes.get(end + 1) != Some(&b'.');
    if has_fraction {
        end += 1 + many(end + 1, digit);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = many(end + 1 + sign, |byte| byte.is_ascii_digit());
        if exponent > 0 {
            return end + 1 + sign + exponent;
        }
    }
    if has_fraction { end } else { end + many(end, letter) }
}

/// The length of a text or name whose quote is at `at`, and doubled within it. One that is not closed goes to the end.
fn quoted(text: &str, at: usize, backslash: bool) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes.get(at).copied();
    let mut next = at + 1;
    while let Some(byte) = bytes.get(next).copied() {
        next += 1;
        if byte == b'\\' && backslash {
            next += 1;
        } else if Some(byte) == quote {
            if bytes.get(next).copied() != quote {
                return next;
            }
            next += 1;
        }
    }
    bytes.len()
}

/// The length of `'{…}'`.
fn alternative(text: &str) -> usize {
    let Some(open) = text.chars().nth(1) else { return text.len() };
    let close = match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    };
    let from = 1 + open.len_utf8();
    let end = [close, '\''].iter().collect::<String>();
    text.get(from..).and_then(|rest| rest.find(&end)).map_or(text.len(), |at| from + at + end.len())
}

/// The length of `$tag$ … $tag$`; `None` if there is none.
fn dollar(text: &str) -> Option<usize> {
    let name = text.get(1..)?;
    let end = name.find('$')?;
    let is_name = name.get(..end)?.chars().all(|c| is_of_word(c) && c != '$');
    let from = end + 2;
    let tag = text.get(..from)?;
    is_name
        .then(|| text.get(from..).and_then(|rest| rest.find(tag)).map_or(text.len(), |at| from + at + from))
}

/// The length of a comment in signs; `None` if it does not end.
fn block(text: &str, nests: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        match bytes.get(at..at + 2)? {
            b"*/" => (depth, at) = (depth - 1, at + 2),
            b"/*" if nests => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, dialect: Dialect) -> String {
        let said = tokens(text, dialect).filter(|token| token.kind != Kind::Space);
        said.map(|token| format!("{}{}", &format!("{:?}", token.kind)[..1], token.text))
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn tokens_end_where_each_engine_ends_them() {
        use Dialect as D;
        for (dialect, text, expected) in [
            (D::POSTGRES, "SELECT 5--3\n+1", "WSELECT|N5|C--3|M+|N1"),
            (D::MYSQL, "SELECT 5--3", "WSELECT|N5|M-|M-|N3"),
            (D::MYSQL, "a -- b\nc --", "Wa|C-- b|Wc|C--"),
            (D::MYSQL, "a--\tb\nc", "Wa|C--\tb|Wc"),
            (D::MYSQL, "a # b\nc", "Wa|C# b|Wc"),
            (D::POSTGRES, "a # b", "Wa|M#|Wb"),
            (D::POSTGRES, "/* a /* b */ c */ d", "C/* a /* b */ c */|Wd"),
            (D::SQLITE, "/* a /* b */ c", "C/* a /* b */|Wc"),
            (D::ANY, "/* a /* b */ c", "C/* a /* b */|Wc"),
            (D::MYSQL, "/*!50001 a */ b */", "E/*!50001|Wa|E*/|Wb|M*|M/"),
            (D::MYSQL, "/*M!10 a */ /*+ b */", "E/*M!10|Wa|E*/|E/*+|Wb|E*/"),
            (D::POSTGRES, "'it''s' 'a\\' b", "T'it''s'|T'a\\'|Wb"),
            (D::MYSQL, "'it\\'s' \"a\\\"b\" `c``d`", "T'it\\'s'|T\"a\\\"b\"|N`c``d`"),
            (D::MYSQL_PLAIN, "'a\\' b", "T'a\\'|Wb"),
            (D::MYSQL.under("sql_mode", "ANSI_QUOTES"), "\"a\" 'b'", "N\"a\"|T'b'"),
            (D::POSTGRES.under("standard_conforming_strings", "off"), "'a\\' b'", "T'a\\' b'"),
            (D::POSTGRES.under("standard_conforming_strings", "on"), "'a\\' b", "T'a\\'|Wb"),
            (D::POSTGRES, "E'a\\'b' xe'c\\' x'ff'", "TE'a\\'b'|Wxe|T'c\\'|Tx'ff'"),
            // What follows a line end goes on with the text before it.
            (D::POSTGRES, "E'a'\n'\\'b' c", "TE'a'|T'\\'b'|Wc"),
            (D::POSTGRES, "E'a' '\\' c", "TE'a'|T'\\'|Wc"),
            (D::POSTGRES, "$$it's$$ $q$ $$ $q$ $12 a$1$ $x", "T$$it's$$|T$q$ $$ $q$|P$12|Wa$1$|M$|Wx"),
            (D::MYSQL, "$1 ?", "M$|N1|P?"),
            (D::POSTGRES, "a ? b", "Wa|M?|Wb"),
            (D::ORACLE, "q'{it's}' nq'[a]'", "Tq'{it's}'|Tnq'[a]'"),
            (D::SQLITE, "[a'b] \"c\"", "N[a'b]|N\"c\""),
            (D::POSTGRES, "1.5e+3 .5 t.5 0xff 1_000 1..2", "N1.5e+3|N.5|Wt|M.|N5|N0xff|N1_000|N1|M.|N.2"),
            // A fraction ends before a word; a whole number does not.
            (D::MYSQL, "1.into 2into 1.e(", "N1.|Winto|N2into|N1.|We|M("),
            (D::POSTGRES, "é2 _a a$b", "Wé2|W_a|Wa$b"),
            (D::POSTGRES, "'open", "T'open"),
        ] {
            assert_eq!(shown(text, dialect), expected, "{text}");
        }
    }

    #[test]
    fn sessions_of_mysql_read_a_text_as_their_mode_says() {
        let mysql = |mode: &str| Dialect::MYSQL.under("sql_mode", mode);
        assert_eq!(mysql("STRICT_ALL_TABLES"), Dialect::MYSQL);
        assert_eq!(mysql("no_backslash_escapes"), Dialect::MYSQL_PLAIN);
        let quotes = Dialect { ansi_quotes: true, ..Dialect::MYSQL };
        for mode in ["ansi_quotes", "ANSI", "ORACLE", "IGNORE_SPACE,DB2"] {
            assert_eq!(mysql(mode), quotes, "{mode}");
        }
        assert_eq!(mysql("MSSQL"), Dialect { brackets: true, ..quotes });
        assert!(["", "ANSI", "MSSQL,NO_BACKSLASH_ESCAPES"].iter().all(|mode| MYSQL.contains(&mysql(mode))));
    }

    #[test]
    fn tokens_one_after_the_other_are_the_text() {
        let dialects = [Dialect::all_of(None), &[Dialect::ANY, Dialect::STANDARD]].concat();
        let signs = [
            "'", "\"", "`", "\\", "$", "$a$", "/*", "*/", "--", "#", "\n", "é", "e", "q", "[", "]", "1.", "!",
        ];
        // Every sequence of three of these, and a few of any length.
        for one in signs {
            for two in signs {
                for three in signs {
                    let text = format!("a{one}{two} {three}b");
                    for dialect in &dialects {
                        let found: String = tokens(&text, *dialect).map(|token| token.text).collect();
                        assert_eq!(found, text);
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_without_quotes() {
        let name = |text: &'static str, dialect| tokens(text, dialect).next().and_then(|token| token.name());
        assert_eq!(name("\"A b\"", Dialect::POSTGRES), Some("A b"));
        assert_eq!(name("[a]", Dialect::SQLITE), Some("a"));
        assert_eq!(name("\"a\"", Dialect::MYSQL), Some("a"));
        assert_eq!(name("\"open", Dialect::POSTGRES), Some("open"));
        assert_eq!(name("'a'", Dialect::POSTGRES), None);
    }
}
