//! The expressions of pgbench's `\set` (PostgreSQL manual, "pgbench", "Built-in Operators" and "Built-in Functions"),
//! read into a tree.

use super::place::{Fault, fault};
use kurabe_core::units;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A variable, by its slot.
    Variable(usize),
    Call(Function, Vec<Expr>),
    /// Conditions with their values, and the value where none holds.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
}

/// What is done with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Negate,
    Equal,
    Different,
    Less,
    LessOrEqual,
    And,
    Or,
    Not,
    IsNull,
    IsTrue,
    IsFalse,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
    Abs,
    ToDouble,
    ToInt,
    Exp,
    Ln,
    Sqrt,
    Pi,
    Power,
    Greatest,
    Least,
    HashFnv1a,
    HashMurmur2,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
}

/// The functions by name, with the fewest and the most arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("double", Function::ToDouble, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("hash", Function::HashMurmur2, 1, 2),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2),
    ("hash_murmur2", Function::HashMurmur2, 1, 2),
    ("int", Function::ToInt, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Modulo, 2, 2),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(i64),
    Double(f64),
    Variable(String),
    Word(String),
    Sign(&'static str),
}

/// The longest first: `<=` is not `<` and `=`.
const SIGNS: &[&str] = &[
    "<<", ">>", "<=", ">=", "<>", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "&", "|", "#",
    "~",
];

/// Deeper than this no expression that a person wrote is nested; the reader goes no deeper, nor into its own stack.
const DEEPEST: usize = 64;

/// Reads an expression; `slot` finds a variable's slot.
pub(super) fn parse(text: &str, slot: &mut dyn FnMut(&str) -> Fault<usize>) -> Fault<Expr> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, slot };
    let expr = reader.level(0)?;
    match reader.tokens.get(reader.at) {
        None => Ok(expr),
        Some(token) => Err(fault(format!("{} was not expected", shown(token)))),
    }
}

fn tokens(text: &str) -> Fault<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            out.push(number(&rest[..length])?);
            length
        } else if first == ':' {
            let name = word(&rest[1..]);
            if name.is_empty() {
                return Err(fault("':' without a variable's name"));
            }
            out.push(Token::Variable(name.to_owned()));
            1 + name.len()
        } else if first.is_alphabetic() || first == '_' {
            let name = word(rest);
            out.push(Token::Word(name.to_ascii_lowercase()));
            name.len()
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = *sign.ok_or_else(|| fault(format!("'{first}' is no part of an expression")))?;
            out.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(out)
}

/// The letters, digits and underscores that a text begins with.
pub(super) fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

fn number(text: &str) -> Fault<Token> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(Token::Int).map_err(|_| fault(format!("{text} does not fit 64 bits")));
    }
    text.parse().map(Token::Double).map_err(|_| fault(format!("'{text}' is not a number")))
}

fn shown(token: &Token) -> String {
    match token {
        Token::Int(n) => format!("'{n}'"),
        Token::Double(n) => format!("'{n}'"),
        Token::Variable(name) => format!("':{name}'"),
        Token::Word(word) => format!("'{word}'"),
        Token::Sign(sign) => format!("'{sign}'"),
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    slot: &'a mut dyn FnMut(&str) -> Fault<usize>,
}

/// The binary operators that are read from the left, the weakest first.
const LEVELS: &[&[(&str, Function)]] = &[
    &[("or", Function::Or)],
    &[("and", Function::And)],
    &[],
    &[],
    &[
        ("<", Function::Less),
        (">", Function::Less),
        ("=", Function::Equal),
        ("<=", Function::LessOrEqual),
        (">=", Function::LessOrEqual),
        ("<>", Function::Different),
        ("!=", Function::Different),
    ],
    &[
        ("|", Function::BitOr),
        ("#", Function::BitXor),
        ("&", Function::BitAnd),
        ("<<", Function::ShiftLeft),
        (">>", Function::ShiftRight),
    ],
    &[("+", Function::Add), ("-", Function::Subtract)],
    &[("*", Function::Multiply), ("/", Function::Divide), ("%", Function::Modulo)],
];
/// The level of NOT, …
const NOT: usize = 2;
/// … that of IS, ISNULL and NOTNULL, …
const IS: usize = 3;
/// … and that of comparisons, which do not chain.
const COMPARISONS: usize = 4;

impl Reader<'_> {
    fn is(&self, text: &str) -> bool {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word == text,
            Some(Token::Sign(sign)) => *sign == text,
            _ => false,
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Fault<()> {
        if self.take(text) {
            return Ok(());
        }
        let found = self.tokens.get(self.at).map_or_else(|| "the end".to_owned(), shown);
        Err(fault(format!("{found} where '{text}' was expected")))
    }

    fn level(&mut self, level: usize) -> Fault<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST * LEVELS.len() {
            return Err(fault("the expression is nested too deeply"));
        }
        let made = self.level_of(level);
        self.depth -= 1;
        made
    }

    fn level_of(&mut self, level: usize) -> Fault<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        if level == NOT && self.take("not") {
            return Ok(Expr::Call(Function::Not, vec![self.level(level)?]));
        }
        let mut left = self.level(level + 1)?;
        if level == IS {
            return self.is_something(left);
        }
        while let Some((sign, function)) = operators.iter().find(|(sign, _)| self.is(sign)) {
            self.at += 1;
            let right = self.level(level + 1)?;
            // Greater is less with the sides changed.
            let sides =
                if sign.starts_with('>') && level == COMPARISONS { [right, left] } else { [left, right] };
            left = Expr::Call(*function, sides.into());
            if level == COMPARISONS {
                break;
            }
        }
        Ok(left)
    }

    fn is_something(&mut self, value: Expr) -> Fault<Expr> {
        let not = |is, expr| if is { Expr::Call(Function::Not, vec![expr]) } else { expr };
        if self.take("isnull") {
            return Ok(Expr::Call(Function::IsNull, vec![value]));
        }
        if self.take("notnull") {
            return Ok(not(true, Expr::Call(Function::IsNull, vec![value])));
        }
        if !self.take("is") {
            return Ok(value);
        }
        let inverted = self.take("not");
        for (word, function) in
            [("null", Function::IsNull), ("true", Function::IsTrue), ("false", Function::IsFalse)]
        {
            if self.take(word) {
                return Ok(not(inverted, Expr::Call(function, vec![value])));
            }
        }
        self.expect("null").map(|()| Expr::Null)
    }

    fn unary(&mut self) -> Fault<Expr> {
        if self.take("-") {
            let value = self.level(LEVELS.len())?;
            return Ok(Expr::Call(Function::Negate, vec![value]));
        }
        if self.take("+") {
            return self.level(LEVELS.len());
        }
        if self.take("~") {
            let value = self.level(LEVELS.len())?;
            return Ok(Expr::Call(Function::BitNot, vec![value]));
        }
        self.primary()
    }

    fn primary(&mut self) -> Fault<Expr> {
        let token = self.tokens.get(self.at).ok_or_else(|| fault("the expression ends too early"))?.clone();
        self.at += 1;
        match token {
            Token::Int(n) => Ok(Expr::Int(n)),
            Token::Double(n) => Ok(Expr::Double(n)),
            Token::Variable(name) => (self.slot)(&name).map(Expr::Variable),
            Token::Sign("(") => {
                let inner = self.level(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) if word == "null" => Ok(Expr::Null),
            Token::Word(word) if word == "true" => Ok(Expr::Bool(true)),
            Token::Word(word) if word == "false" => Ok(Expr::Bool(false)),
            Token::Word(word) if word == "case" => self.case(),
            Token::Word(word) => self.call(&word),
            token @ Token::Sign(_) => Err(fault(format!("{} was not expected", shown(&token)))),
        }
    }

    fn case(&mut self) -> Fault<Expr> {
        let mut arms = Vec::new();
        while self.take("when") {
            let condition = self.level(0)?;
            self.expect("then")?;
            arms.push((condition, self.level(0)?));
        }
        if arms.is_empty() {
            self.expect("when")?;
        }
        let otherwise = if self.take("else") { self.level(0)? } else { Expr::Null };
        self.expect("end")?;
        Ok(Expr::Case(arms, Box::new(otherwise)))
    }

    fn call(&mut self, name: &str) -> Fault<Expr> {
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            let near = units::nearest(name, &names).map_or_else(
                || format!("there are: {}", names.join(", ")),
                |near| format!("did you mean '{near}'?"),
            );
            return Err(fault(format!("there is no function '{name}'")).hint(near));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is(")") {
            arguments.push(self.level(0)?);
            while self.take(",") {
                arguments.push(self.level(0)?);
            }
        }
        self.expect(")")?;
        if !(*least..=*most).contains(&arguments.len()) {
            let found = arguments.len();
            let wants = match (*least, *most) {
                (one, other) if one == other => format!("{one}"),
                (one, usize::MAX) => format!("{one} or more"),
                (one, other) => format!("{one} to {other}"),
            };
            return Err(fault(format!("{name} takes {wants} arguments and was given {found}")));
        }
        Ok(Expr::Call(*function, arguments))
    }
}
