//! Parses the expressions of pgbench's `\set` (PostgreSQL manual, "pgbench", "Built-in Operators" and "Built-in
//! Functions") into a tree.

use super::datum::Datum;
use super::functions::{BINARY, BIT_NOT, FUNCTIONS, Function, NEGATE, NOT, binding};
use super::section::position;
use super::variables::DEFAULT_SEED;
use crate::prelude::*;

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A variable, by its slot.
    Variable(usize),
    Call(&'static Function, Vec<Expr>),
    /// Whether a value is null, true or false.
    Is(Box<Expr>, Datum),
    /// AND, or OR.
    Logic {
        or: bool,
        sides: Box<[Expr; 2]>,
    },
    /// Conditions with their values, and the value if no condition is true.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
}

impl Expr {
    /// Whether all of its variables have a property.
    pub(super) fn all_variables(&self, holds: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Self::Variable(slot) => holds(*slot),
            Self::Call(_, arguments) => arguments.iter().all(|argument| argument.all_variables(holds)),
            Self::Is(value, _) => value.all_variables(holds),
            Self::Logic { sides, .. } => sides.iter().all(|side| side.all_variables(holds)),
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
        let logic = [("or", binding::OR), ("and", binding::AND)];
        let logic = logic.into_iter().find(|(word, _)| self.is(word)).map(|(_, level)| level);
        logic.or_else(|| Some(BINARY.iter().find(|(_, operator)| self.is(operator.name))?.0))
    }

    fn binary(&mut self, left: Expr) -> Result<Expr> {
        for (or, word, level) in [(true, "or", binding::OR), (false, "and", binding::AND)] {
            if self.take(word) {
                return Ok(Expr::Logic { or, sides: Box::new([left, self.above(level)?]) });
            }
        }
        let Some((level, operator)) = BINARY.iter().find(|(_, operator)| self.is(operator.name)) else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.above(*level)?;
        // As pgbench does, which matters if both sides draw: `a > b` is `b < a`.
        let is_exchanged = matches!(operator.name, ">" | ">=");
        Ok(Expr::Call(operator, if is_exchanged { vec![right, left] } else { vec![left, right] }))
    }

    fn is_something(&mut self, value: Expr) -> Result<Expr> {
        let is = |inverted, datum| {
            let is = Expr::Is(Box::new(value), datum);
            if inverted { Expr::Call(&NOT, vec![is]) } else { is }
        };
        if self.take("isnull") {
            return Ok(is(false, Datum::Null));
        }
        if self.take("notnull") {
            return Ok(is(true, Datum::Null));
        }
        self.expect("is")?;
        let inverted = self.take("not");
        for (word, datum) in [("true", Datum::Bool(true)), ("false", Datum::Bool(false))] {
            if self.take(word) {
                return Ok(is(inverted, datum));
            }
        }
        self.expect("null").map(|()| is(inverted, Datum::Null))
    }

    /// A value with its prefix operators. Each applies to operators of higher precedence: `~1 + 2` is `~(1 + 2)`, and
    /// `not 1 = 2` is `not (1 = 2)`.
    fn prefixed(&mut self) -> Result<Expr> {
        if self.take("-") {
            if self.tokens.get(self.at) == Some(&Token::OneTooMany) {
                self.at += 1;
                return Ok(Expr::Int(i64::MIN));
            }
            return Ok(Expr::Call(&NEGATE, vec![self.above(binding::SIGN)?]));
        }
        if self.take("+") {
            return self.above(binding::SIGN);
        }
        if self.take("~") {
            return Ok(Expr::Call(&BIT_NOT, vec![self.above(binding::BITS)?]));
        }
        if self.take("not") {
            // Unlike the other prefix operators, `not` is right-associative: `not not true`.
            return Ok(Expr::Call(&NOT, vec![self.above(binding::NOT)?]));
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
        let names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        let function = &FUNCTIONS[position(name, &names, "function")?];
        let (least, most) = function.arguments;
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is(")") {
            arguments.push(self.above(binding::NONE)?);
            while self.take(",") {
                arguments.push(self.above(binding::NONE)?);
            }
        }
        self.expect(")")?;
        if !(least..=most).contains(&arguments.len()) {
            let found = arguments.len();
            let wants = match (least, most) {
                (one, other) if one == other => format!("{one}"),
                (one, usize::MAX) => format!("{one} or more"),
                (one, other) => format!("{one} to {other}"),
            };
            return Err(Error::usage(format!("{name} takes {wants} arguments, found {found}")));
        }
        // Without a seed argument, a variable that the user can set is the seed.
        if least < most && arguments.len() < most && most != usize::MAX {
            arguments.push(Expr::Variable((self.slot)(DEFAULT_SEED)?));
        }
        Ok(Expr::Call(function, arguments))
    }
}
