//! The tokens of Oracle's SQL.

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// In capital letters.
    Word(String),
    Name(String),
    Text,
    Number,
    /// A placeholder, without its colon.
    Bind(String),
    Mark(&'static str),
}

pub(super) const MARKS: [&str; 14] =
    ["||", "<>", ">=", "<=", "(", ")", ",", ".", "=", "<", ">", "*", "-", ";"];

/// The tokens of a statement, or where it is not a token.
pub(super) fn tokens(sql: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let while_ = |from: usize, of: fn(char) -> bool| {
            rest[from..].find(|c| !of(c)).map_or(rest.len(), |at| from + at)
        };
        let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#');
        let length = match first {
            '\'' | '"' => {
                let mut end = 1;
                loop {
                    let found = rest[end..].find(first).ok_or_else(|| format!("an open quote: {rest}"))?;
                    end += found + 1;
                    if !rest[end..].starts_with(first) {
                        break;
                    }
                    end += 1;
                }
                let name = first == '"';
                out.push(if name { Token::Name(rest[1..end - 1].to_owned()) } else { Token::Text });
                end
            }
            ':' => {
                let end = while_(1, |c| c.is_ascii_digit());
                out.push(Token::Bind(rest[1..end].to_owned()));
                end
            }
            c if c.is_ascii_digit() => {
                out.push(Token::Number);
                while_(0, |c| c.is_ascii_digit())
            }
            c if c.is_alphabetic() => {
                let end = while_(0, in_word);
                out.push(Token::Word(rest[..end].to_ascii_uppercase()));
                end
            }
            _ => {
                let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
                let mark = mark.ok_or_else(|| format!("an unknown character: {rest}"))?;
                out.push(Token::Mark(mark));
                mark.len()
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(out)
}
