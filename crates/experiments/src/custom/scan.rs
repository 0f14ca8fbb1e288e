//! The words of a statement, without texts and comments. This is not a parser: it knows where words are, not what they
//! mean.

use super::expression::word;

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, in lower case.
    Word(String),
    /// A quoted name, or a text between double quotes, in lower case.
    Name(String),
    /// A character that is neither in a word nor in a text.
    Mark(char),
    /// A text or a number.
    Value,
}

impl Token {
    /// The word, if it is not quoted.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The word or name.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// How an engine writes texts and comments.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of its own, and they combine")]
pub(super) struct Lexis {
    /// A backslash escapes a quote.
    backslash: bool,
    /// `#` begins a comment, `--` only before a space, and `/*!` and `/*+` are no comments.
    mysql: bool,
    /// `$tag$ … $tag$` and `E'…\'…'` are texts, and comments nest.
    pub(super) postgres: bool,
    /// `q'{…}'` is a text.
    alternative: bool,
    /// `[…]` is a name.
    brackets: bool,
}

impl Lexis {
    /// Whether a backslash escapes a quote in a text with this prefix.
    pub(super) fn escapes(self, prefix: &str) -> bool {
        self.backslash || self.postgres && prefix.eq_ignore_ascii_case("e")
    }
}

const PLAIN: Lexis =
    Lexis { backslash: false, mysql: false, postgres: false, alternative: false, brackets: false };
const POSTGRES: Lexis = Lexis { postgres: true, ..PLAIN };
/// With `NO_BACKSLASH_ESCAPES`, and without.
const MYSQL: [Lexis; 2] = [Lexis { mysql: true, ..PLAIN }, Lexis { mysql: true, backslash: true, ..PLAIN }];
const SQLITE: Lexis = Lexis { brackets: true, ..PLAIN };
const ALTERNATIVE: Lexis = Lexis { alternative: true, ..PLAIN };

/// How the engine with this keyword may write; without one, all ways of all engines.
pub(super) fn lexes(engine: Option<&str>) -> &'static [Lexis] {
    match engine {
        Some("postgres" | "postgresql") => &[POSTGRES],
        Some("mysql" | "mariadb") => &MYSQL,
        Some("sqlite") => &[SQLITE],
        Some("oracle") => &[ALTERNATIVE],
        _ => &[POSTGRES, MYSQL[0], MYSQL[1], SQLITE, ALTERNATIVE],
    }
}

/// The tokens of a statement.
pub(super) fn tokens(sql: &str, lexis: Lexis) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest, lexis);
        if skipped > 0 {
            rest = &rest[skipped..];
            continue;
        }
        let name = word(rest);
        let mut length = first.len_utf8();
        match first {
            '\'' => {
                // A word right before it, as in E'…', is of the text, and stays as a word.
                let before = sql[..sql.len() - rest.len()].chars().next_back();
                let prefix =
                    out.last().and_then(Token::word).filter(|_| before.is_some_and(char::is_alphanumeric));
                length = match prefix {
                    Some("q" | "nq") if lexis.alternative => alternative(rest),
                    prefix => quoted(rest, lexis.backslash || lexis.postgres && prefix == Some("e")),
                };
                out.push(Token::Value);
            }
            '"' | '`' => {
                length = quoted(rest, lexis.backslash && first == '"');
                out.push(Token::Name(rest[1..length].trim_end_matches(first).to_lowercase()));
            }
            '[' if lexis.brackets && rest.contains(']') => {
                length = rest.find(']').map_or(1, |at| at + 1);
                out.push(Token::Name(rest[1..length - 1].to_lowercase()));
            }
            '$' if lexis.postgres && dollar(rest) > 0 => {
                length = dollar(rest);
                out.push(Token::Value);
            }
            _ if !name.is_empty() => {
                // `$` is of a name where it is not the first character.
                length =
                    rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
                let text = &rest[..length];
                let number = first.is_ascii_digit();
                out.push(if number { Token::Value } else { Token::Word(text.to_lowercase()) });
            }
            c if c.is_whitespace() => {}
            c => out.push(Token::Mark(c)),
        }
        rest = &rest[length..];
    }
    out
}

/// The length of a comment at the beginning of a text, or of the mark that begins an executed one; 0 if there is none.
fn comment(text: &str, lexis: Lexis) -> usize {
    let line = || text.find('\n').map_or(text.len(), |at| at + 1);
    match text.as_bytes() {
        [b'#', ..] if lexis.mysql => line(),
        [b'-', b'-', next, ..] if !lexis.mysql || next.is_ascii_whitespace() || next.is_ascii_control() => {
            line()
        }
        [b'-', b'-'] => text.len(),
        [b'/', b'*', b'!' | b'+', ..] if lexis.mysql => {
            3 + text[3..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 3)
        }
        [b'/', b'*', b'M', b'!', ..] if lexis.mysql => {
            4 + text[4..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 4)
        }
        // The end of an executed comment.
        [b'*', b'/', ..] if lexis.mysql => 2,
        [b'/', b'*', ..] => block(text, lexis.postgres).unwrap_or(text.len()),
        _ => 0,
    }
}

/// The length of a block comment; `None` if it does not end.
pub(super) fn block(text: &str, nests: bool) -> Option<usize> {
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let found = at + text[at..].find(['*', '/'])?;
        at = found
            + match text.as_bytes().get(found..found + 2) {
                Some(b"*/") => {
                    depth -= 1;
                    2
                }
                Some(b"/*") if nests => {
                    depth += 1;
                    2
                }
                _ => 1,
            };
    }
    Some(at)
}

/// The length of a text or name within quotes, which are doubled within it. An unterminated one extends to the end.
pub(super) fn quoted(text: &str, backslash: bool) -> usize {
    let mut chars = text.char_indices();
    let Some((_, quote)) = chars.next() else { return 0 };
    while let Some((at, c)) = chars.next() {
        if c == '\\' && backslash {
            chars.next();
        } else if c == quote {
            if !text[at + 1..].starts_with(quote) {
                return at + 1;
            }
            chars.next();
        }
    }
    text.len()
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
    text[from..].find(&end).map_or(text.len(), |at| from + at + end.len())
}

/// The length of `$tag$ … $tag$`; 0 if there is none.
pub(super) fn dollar(text: &str) -> usize {
    let tag = word(&text[1..]);
    if tag.starts_with(|c: char| c.is_ascii_digit()) || !text[1 + tag.len()..].starts_with('$') {
        return 0;
    }
    let from = tag.len() + 2;
    text[from..].find(&text[..from]).map_or(text.len(), |at| from + at + from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sql: &str, engine: Option<&str>) -> Vec<String> {
        let of = |lexis: &Lexis| tokens(sql, *lexis);
        let all = lexes(engine).iter().map(of);
        let words = |tokens: Vec<Token>| -> Vec<String> {
            tokens.iter().filter_map(|token| token.name().map(str::to_owned)).collect()
        };
        let mut all: Vec<String> = all.map(|tokens| words(tokens).join(" ")).collect();
        all.dedup();
        all
    }

    #[test]
    fn texts_and_comments_have_no_words() {
        for (sql, engine, expected) in [
            ("a 'b' -- c\nd /* e */ f", None, "a d f"),
            ("a 'b''c' d", None, "a d"),
            ("a 'b\\' c 'd'", Some("sqlite"), "a c"),
            ("a 'b\\' c ' d", Some("postgres"), "a c"),
            ("a E'b\\' c ' d", Some("postgres"), "a e d"),
            ("a /* b /* c */ d */ e", Some("postgres"), "a e"),
            ("a /* b /* c */ d", Some("sqlite"), "a d"),
            ("a $x$ b $y$ c $x$ d", Some("postgres"), "a d"),
            ("a $1 b", Some("postgres"), "a b"),
            ("a /*!50000 b */ c /*M! d */ /*+ e */ # f\n g --h", Some("mysql"), "a b c d e g h"),
            ("a -- b\nc", Some("mysql"), "a c"),
            ("a [b'c] d", Some("sqlite"), "a b'c d"),
            ("a[b'c'] d", Some("postgres"), "a b d"),
            ("a q'{it's b}' c", Some("oracle"), "a q c"),
            ("\"A b\" `C` \"d\"\"e\"", Some("sqlite"), "a b c d\"\"e"),
            ("a 'b", None, "a"),
        ] {
            assert_eq!(words(sql, engine), [expected], "{engine:?}: {sql}");
        }
    }

    #[test]
    fn text_that_engines_end_differently_is_read_in_each_way() {
        for sql in
            ["SELECT '\\' nextval('s') '", "SELECT 1 # nextval('s')", "SELECT '\\'' || nextval('s') --'"]
        {
            assert!(words(sql, None).iter().any(|words| words.contains("nextval")), "{sql}");
        }
    }
}
