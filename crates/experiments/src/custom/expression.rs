//! Parses the expressions of pgbench's `\set` (PostgreSQL manual, "pgbench", "Built-in Operators" and "Built-in
//! Functions") into a tree.

use super::declared::DEFAULT_SEED;
use super::section::position;
use crate::prelude::*;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A variable, by its slot.
    Variable(usize),
    Call(Function, Vec<Expr>),
    /// Conditions with their values, and the value if no condition is true.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
}

impl Expr {
    /// Whether all of its variables have a property.
    pub(super) fn all_variables(&self, holds: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Self::Variable(slot) => holds(*slot),
            Self::Call(_, arguments) => arguments.iter().all(|argument| argument.all_variables(holds)),
            Self::Case(arms, otherwise) => {
                let arm = |(condition, value): &(Self, Self)| {
                    condition.all_variables(holds) && value.all_variables(holds)
                };
                arms.iter().all(arm) && otherwise.all_variables(holds)
            }
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Double(_) => true,
        }
    }
}

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
    /// A Zipf distribution with a small exponent, which pgbench's language lacks.
    RandomZipfianBelowOne,
    /// sysbench's default distribution, which pgbench's language lacks.
    RandomSpecial,
    Permute,
}

/// The functions by name, with their minimum and maximum number of arguments.
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
    ("permute", Function::Permute, 2, 3),
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
    /// 9223372036854775808, which is valid only after a minus sign.
    OneTooMany,
    Double(f64),
    Variable(String),
    Word(String),
    Sign(&'static str),
}

/// The longest first, so that `<=` is not read as `<` and `=`.
const SIGNS: &[&str] = &[
    "<<", ">>", "<=", ">=", "<>", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "&", "|", "#",
    "~",
];

/// The maximum nesting depth, which bounds the use of the stack.
const DEEPEST: usize = 100;

/// Parses an expression; `slot` returns a variable's slot.
pub(super) fn parse(text: &str, slot: &mut dyn FnMut(&str) -> Result<usize>) -> Result<Expr> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, slot };
    let expr = reader.above(binding::NONE)?;
    match reader.tokens.get(reader.at) {
        None => Ok(expr),
        Some(token) => Err(Error::usage(format!("unexpected {}", shown(token)))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>> {
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
                return Err(Error::usage("':' without a variable's name"));
            }
            out.push(Token::Variable(name.to_owned()));
            1 + name.len()
        } else if first.is_alphabetic() || first == '_' {
            let name = word(rest);
            out.push(Token::Word(name.to_ascii_lowercase()));
            name.len()
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign =
                *sign.ok_or_else(|| Error::usage(format!("'{first}' is not part of an expression")))?;
            out.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(out)
}

/// The leading letters, digits and underscores of a text.
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

fn number(text: &str) -> Result<Token> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        let too_large = || Error::usage(format!("{text} does not fit 64 bits"));
        return match text.parse::<u64>() {
            Ok(number) if number == i64::MIN.unsigned_abs() => Ok(Token::OneTooMany),
            Ok(number) => i64::try_from(number).map(Token::Int).map_err(|_| too_large()),
            Err(_) => Err(too_large()),
        };
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Token::Double(number)),
        Ok(_) => Err(Error::usage(format!("{text} does not fit a double"))),
        Err(_) => Err(Error::usage(format!("'{text}' is not a number"))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Int(n) => format!("'{n}'"),
        Token::OneTooMany => "'9223372036854775808'".to_owned(),
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
    slot: &'a mut dyn FnMut(&str) -> Result<usize>,
}

/// Precedence of the operators, the lowest first, as in PostgreSQL.
mod binding {
    pub(super) const NONE: u8 = 0;
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const IS: u8 = 4;
    pub(super) const COMPARISON: u8 = 5;
    pub(super) const BITS: u8 = 6;
    pub(super) const SUM: u8 = 7;
    pub(super) const PRODUCT: u8 = 8;
    pub(super) const SIGN: u8 = 9;
}

/// The binary operators, except `IS` and its variants.
const BINARY: &[(&str, Function, u8)] = &[
    ("or", Function::Or, binding::OR),
    ("and", Function::And, binding::AND),
    ("<", Function::Less, binding::COMPARISON),
    (">", Function::Less, binding::COMPARISON),
    ("=", Function::Equal, binding::COMPARISON),
    ("<=", Function::LessOrEqual, binding::COMPARISON),
    (">=", Function::LessOrEqual, binding::COMPARISON),
    ("<>", Function::Different, binding::COMPARISON),
    ("!=", Function::Different, binding::COMPARISON),
    ("|", Function::BitOr, binding::BITS),
    ("#", Function::BitXor, binding::BITS),
    ("&", Function::BitAnd, binding::BITS),
    ("<<", Function::ShiftLeft, binding::BITS),
    (">>", Function::ShiftRight, binding::BITS),
    ("+", Function::Add, binding::SUM),
    ("-", Function::Subtract, binding::SUM),
    ("*", Function::Multiply, binding::PRODUCT),
    ("/", Function::Divide, binding::PRODUCT),
    ("%", Function::Modulo, binding::PRODUCT),
];

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

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) {
            return Ok(());
        }
        let found = self.tokens.get(self.at).map_or_else(|| "the end".to_owned(), shown);
        Err(Error::usage(format!("expected '{text}', found {found}")))
    }

    /// Parses operators that have a higher precedence than `least`.
    fn above(&mut self, least: u8) -> Result<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::usage("the expression is nested too deeply"));
        }
        let mut left = self.prefixed()?;
        let mut compared = false;
        while let Some(level) = self.next_binding().filter(|level| *level > least) {
            if compared && level == binding::COMPARISON {
                return Err(Error::usage("comparisons cannot be chained: write parentheses"));
            }
            compared = level == binding::COMPARISON;
            left = if level == binding::IS { self.is_something(left)? } else { self.binary(left)? };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn next_binding(&self) -> Option<u8> {
        if ["is", "isnull", "notnull"].iter().any(|word| self.is(word)) {
            return Some(binding::IS);
        }
        BINARY.iter().find(|(sign, ..)| self.is(sign)).map(|(.., level)| *level)
    }

    fn binary(&mut self, left: Expr) -> Result<Expr> {
        let Some((sign, function, level)) = BINARY.iter().find(|(sign, ..)| self.is(sign)) else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.above(*level)?;
        // Greater is less with the operands exchanged.
        let sides = if matches!(*sign, ">" | ">=") { [right, left] } else { [left, right] };
        Ok(Expr::Call(*function, sides.into()))
    }

    fn is_something(&mut self, value: Expr) -> Result<Expr> {
        let not = |is, expr| if is { Expr::Call(Function::Not, vec![expr]) } else { expr };
        if self.take("isnull") {
            return Ok(Expr::Call(Function::IsNull, vec![value]));
        }
        if self.take("notnull") {
            return Ok(not(true, Expr::Call(Function::IsNull, vec![value])));
        }
        self.expect("is")?;
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

    /// A value with its prefix operators. Each applies to operators of higher precedence: `~1 + 2` is `~(1 + 2)`, and
    /// `not 1 = 2` is `not (1 = 2)`.
    fn prefixed(&mut self) -> Result<Expr> {
        if self.take("-") {
            if self.tokens.get(self.at) == Some(&Token::OneTooMany) {
                self.at += 1;
                return Ok(Expr::Int(i64::MIN));
            }
            return Ok(Expr::Call(Function::Negate, vec![self.above(binding::SIGN)?]));
        }
        if self.take("+") {
            return self.above(binding::SIGN);
        }
        if self.take("~") {
            return Ok(Expr::Call(Function::BitNot, vec![self.above(binding::BITS)?]));
        }
        if self.take("not") {
            // Unlike the other prefix operators, `not` is right-associative: `not not true`.
            return Ok(Expr::Call(Function::Not, vec![self.above(binding::NOT)?]));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expr> {
        let token =
            self.tokens.get(self.at).ok_or_else(|| Error::usage("the expression is incomplete"))?.clone();
        self.at += 1;
        match token {
            Token::Int(n) => Ok(Expr::Int(n)),
            Token::OneTooMany => Err(Error::usage("9223372036854775808 does not fit 64 bits")),
            Token::Double(n) => Ok(Expr::Double(n)),
            Token::Variable(name) => (self.slot)(&name).map(Expr::Variable),
            Token::Sign("(") => {
                let inner = self.above(binding::NONE)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) if word == "null" => Ok(Expr::Null),
            Token::Word(word) if word == "true" => Ok(Expr::Bool(true)),
            Token::Word(word) if word == "false" => Ok(Expr::Bool(false)),
            Token::Word(word) if word == "case" => self.case(),
            Token::Word(word) => self.call(&word),
            token @ Token::Sign(_) => Err(Error::usage(format!("unexpected {}", shown(&token)))),
        }
    }

    fn case(&mut self) -> Result<Expr> {
        let mut arms = Vec::new();
        while self.take("when") {
            let condition = self.above(binding::NONE)?;
            self.expect("then")?;
            arms.push((condition, self.above(binding::NONE)?));
        }
        if arms.is_empty() {
            self.expect("when")?;
        }
        let otherwise = if self.take("else") { self.above(binding::NONE)? } else { Expr::Null };
        self.expect("end")?;
        Ok(Expr::Case(arms, Box::new(otherwise)))
    }

    fn call(&mut self, name: &str) -> Result<Expr> {
        let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
        let (_, function, least, most) = &FUNCTIONS[position(name, &names, "function")?];
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is(")") {
            arguments.push(self.above(binding::NONE)?);
            while self.take(",") {
                arguments.push(self.above(binding::NONE)?);
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
            return Err(Error::usage(format!("{name} takes {wants} arguments, found {found}")));
        }
        // Without a seed argument, a variable that the user can set is the seed.
        if matches!(function, Function::HashFnv1a | Function::HashMurmur2 | Function::Permute)
            && arguments.len() < *most
        {
            arguments.push(Expr::Variable((self.slot)(DEFAULT_SEED)?));
        }
        Ok(Expr::Call(*function, arguments))
    }
}
