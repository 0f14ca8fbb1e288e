//! The shape of a statement on each of its tables: which columns are compared, by which it is ordered, which it gives.
//!
//! Nothing is parsed: a column is a name that one of the statement's tables has, in a clause, before or behind an operator. A
//! shape that is wrong costs the time of a trial, and no answer: what is proposed of it is measured.

use kurabe_capture::statements::Asked;
use kurabe_copy::catalog::Table;
use kurabe_protocol::sql::{Dialect, Kind, Token, tokens};
use kurabe_wire::statement::GAP;
use std::collections::BTreeSet;

/// How a column is in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Column(String),
    /// A column that is compared with the beginning of a text.
    Beginning(String),
    /// A function of a column.
    Call {
        function: String,
        column: String,
    },
    /// The first characters of a long text.
    Prefix(String, u32),
}

impl Part {
    pub fn column(&self) -> &str {
        match self {
            Self::Column(column)
            | Self::Beginning(column)
            | Self::Prefix(column, _)
            | Self::Call { column, .. } => column,
        }
    }
}

/// What is compared for equality, and the literal that all calls compare it with, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equal {
    pub part: Part,
    pub constant: Option<String>,
}

/// The shape of a statement on a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The table's place in the catalogue.
    pub table: usize,
    pub equal: Vec<Equal>,
    pub range: Vec<Part>,
    /// The columns that rows are ordered by, and whether downwards.
    pub order: Vec<(String, bool)>,
    /// Other columns that it gives.
    pub given: BTreeSet<String>,
    /// All columns of its conditions and orders, whether an index could serve them or not.
    pub named: BTreeSet<String>,
    /// Whether it gives all columns.
    pub gives_all: bool,
}

impl Shape {
    /// The columns by which an index could serve it.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let compared = self.equal.iter().map(|one| &one.part).chain(&self.range).map(Part::column);
        compared.chain(self.order.iter().map(|(column, _)| column.as_str()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    Given,
    From,
    Using,
    Where,
    Order,
    Other,
}

/// Words behind which a parenthesis is no call of a function.
const NO_FUNCTIONS: [&str; 14] = [
    "and", "or", "not", "in", "any", "all", "some", "exists", "where", "on", "having", "when", "by", "values",
];
/// Words that end a list of tables, and are no alias.
const NO_ALIASES: [&str; 22] = [
    "where", "on", "join", "inner", "left", "right", "full", "cross", "natural", "using", "group", "order",
    "having", "limit", "offset", "set", "values", "returning", "union", "for", "select", "outer",
];

/// The shapes of a statement on tables, each of which has its schema, empty for that in which names are looked up.
pub fn shapes(asked: &Asked, dialect: Dialect, tables: &[(String, Table)]) -> Vec<Shape> {
    let tokens: Vec<Token<'_>> = tokens(&asked.template, dialect).filter(|token| !token.is_blank()).collect();
    let mut reading = Reading { tokens: &tokens, tables, names: Vec::new(), shapes: Vec::new() };
    reading.find_tables();
    reading.read(&asked.constants);
    reading.shapes
}

struct Reading<'a> {
    tokens: &'a [Token<'a>],
    tables: &'a [(String, Table)],
    /// By which names a table is known in the statement.
    names: Vec<(&'a str, usize)>,
    shapes: Vec<Shape>,
}

/// A column in the statement.
struct Found {
    /// The place of its table among the shapes.
    shape: usize,
    name: String,
    /// The token behind it.
    next: usize,
}

impl<'a> Reading<'a> {
    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(word))
    }

    fn is_mark(&self, at: usize, mark: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_mark(mark))
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at)?.name()
    }

    /// Finds the tables behind FROM, JOIN, UPDATE, INTO and commas of a list of tables, with their aliases.
    fn find_tables(&mut self) {
        let (mut expects, mut in_list, mut outer) = (false, false, Vec::new());
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            at += 1;
            if token.is_mark('(') {
                outer.push(in_list);
                in_list = false;
            } else if token.is_mark(')') {
                in_list = outer.pop().unwrap_or(false);
            } else if token.is_one_of(&["from", "join", "update", "into", "using"]) {
                (expects, in_list) = (true, token.is("from"));
                continue;
            } else if token.is_mark(',') {
                expects = in_list;
                continue;
            } else if token.is_one_of(&["where", "set", "group", "order", "values"]) {
                in_list = false;
            } else if expects && !token.is("only") && token.name().is_some() {
                let schema = token.name().filter(|_| self.is_mark(at, '.'));
                if schema.is_some() {
                    at += 2;
                }
                let name = self.name(at - 1).unwrap_or_default();
                self.found_table(schema, name, &mut at);
            }
            expects = expects && token.is("only");
        }
    }

    fn found_table(&mut self, schema: Option<&str>, name: &'a str, at: &mut usize) {
        let is = |(known, table): &(String, Table), schema: &str| {
            table.name.eq_ignore_ascii_case(name) && known.eq_ignore_ascii_case(schema)
        };
        let of = |schema: &str| self.tables.iter().position(|table| is(table, schema));
        // The first schema may have any name, and a session may look up names in another one.
        let any = || self.tables.iter().position(|(_, table)| table.name.eq_ignore_ascii_case(name));
        let Some(table) = schema.and_then(of).or_else(|| of("")).or_else(any) else { return };
        self.names.push((name, table));
        if !self.shapes.iter().any(|shape| shape.table == table) {
            self.shapes.push(Shape { table, ..Shape::default() });
        }
        let behind = *at + usize::from(self.is(*at, "as"));
        if let Some(alias) = self.name(behind)
            && !self.tokens[behind].is_one_of(&NO_ALIASES)
        {
            self.names.push((alias, table));
            *at = behind + 1;
        }
    }

    /// The column that begins at a token.
    fn column(&self, at: usize) -> Option<Found> {
        let first = self.name(at)?;
        if at > 0 && self.is_mark(at - 1, '.') {
            return None;
        }
        let (of, name, next) = match self.name(at + 2).filter(|_| self.is_mark(at + 1, '.')) {
            Some(name) => (Some(first), name, at + 3),
            None => (None, first, at + 1),
        };
        if self.is_mark(next, '(') || self.is_mark(next, '.') {
            return None;
        }
        let has = |table: usize| {
            let columns = &self.tables.get(table)?.1.columns;
            columns
                .iter()
                .find(|column| column.name.eq_ignore_ascii_case(name))
                .map(|column| column.name.clone())
        };
        let known = match of {
            Some(of) => {
                self.names.iter().find(|(known, _)| known.eq_ignore_ascii_case(of)).map(|(_, table)| *table)
            }
            None => self.shapes.iter().map(|shape| shape.table).find(|table| has(*table).is_some()),
        };
        let shape = self.shapes.iter().position(|shape| Some(shape.table) == known)?;
        Some(Found { shape, name: has(known?)?, next })
    }

    fn read(&mut self, constants: &[Option<String>]) {
        let (mut clause, mut outer, mut gaps) = (Clause::Other, Vec::new(), 0);
        let mut gap_of = Vec::with_capacity(self.tokens.len());
        for token in self.tokens {
            gap_of.push(token.is_mark(GAP).then_some(gaps));
            gaps += usize::from(token.is_mark(GAP));
        }
        let constant = |at: usize| {
            let gap = gap_of.get(at).copied().flatten()?;
            // A value that is calculated with is none of the column.
            let is_alone = self
                .tokens
                .get(at + 1)
                .is_none_or(|next| next.name().is_some() || next.is_mark(')') || next.is_mark(';'));
            constants.get(gap).cloned().flatten().filter(|_| is_alone)
        };
        let constants: Vec<Option<String>> = (0..self.tokens.len()).map(constant).collect();
        let mut at = 0;
        while at < self.tokens.len() {
            let token = self.tokens[at];
            if token.is_mark('(') {
                outer.push(clause);
            } else if token.is_mark(')') {
                clause = outer.pop().unwrap_or(Clause::Other);
            } else if let Some(begun) = self.begins(at) {
                clause = begun;
            } else if let Some(found) = self.column(at) {
                at = self.found(clause, at, found, &constants);
                continue;
            } else if clause == Clause::Given && token.is_mark('*') && !self.is_mark(at.wrapping_sub(1), '(')
            {
                let of = self.name(at.wrapping_sub(2)).filter(|_| self.is_mark(at.wrapping_sub(1), '.'));
                let is_meant = |table: usize| {
                    of.is_none_or(|of| {
                        self.names
                            .iter()
                            .any(|(name, known)| *known == table && name.eq_ignore_ascii_case(of))
                    })
                };
                let all: Vec<usize> =
                    (0..self.shapes.len()).filter(|at| is_meant(self.shapes[*at].table)).collect();
                for at in all {
                    self.shapes[at].gives_all = true;
                }
            }
            at += 1;
        }
    }

    /// The clause that a token begins.
    fn begins(&self, at: usize) -> Option<Clause> {
        let token = self.tokens.get(at)?;
        Some(match token.text.to_ascii_lowercase().as_str() {
            _ if token.kind != Kind::Word => return None,
            "select" | "returning" => Clause::Given,
            "from" | "join" | "into" => Clause::From,
            "using" => Clause::Using,
            "update" if at == 0 => Clause::From,
            "where" | "on" | "having" => Clause::Where,
            "group" | "order" if self.is(at + 1, "by") => Clause::Order,
            "set" | "limit" | "offset" | "values" | "union" | "window" => Clause::Other,
            _ => return None,
        })
    }

    /// Enters a column of a clause. Returns the token to go on with.
    fn found(&mut self, clause: Clause, at: usize, found: Found, constants: &[Option<String>]) -> usize {
        let Found { shape, name, next } = found;
        if matches!(clause, Clause::Order | Clause::Where) {
            self.shapes[shape].named.insert(name.clone());
        }
        let called = self.tokens.get(at.wrapping_sub(2)).filter(|_| self.is_mark(at.wrapping_sub(1), '('));
        match clause {
            // The first of an order.
            Clause::Given if called.is_some_and(|word| word.is_one_of(&["min", "max"])) => {
                self.shapes[shape].named.insert(name.clone());
                self.shapes[shape].order.push((name, false));
            }
            Clause::Given => drop(self.shapes[shape].given.insert(name)),
            Clause::Using => self.joined(&name),
            Clause::Order => {
                let is_first = self.is(at.wrapping_sub(1), "by") || self.is_mark(at.wrapping_sub(1), ',');
                let down = self.is(next, "desc");
                let ends = down || self.is(next, "asc") || self.is(next, "limit") || self.is(next, "nulls");
                let ends = ends
                    || next >= self.tokens.len()
                    || self.is_mark(next, ',')
                    || self.is_mark(next, ')')
                    || self.is_mark(next, ';')
                    || self
                        .tokens
                        .get(next)
                        .is_some_and(|word| word.is_one_of(&["offset", "for", "having", "order"]));
                // An order by columns of two tables is of none of them.
                if is_first
                    && ends
                    && self.shapes.iter().enumerate().all(|(at, one)| at == shape || one.order.is_empty())
                {
                    self.shapes[shape].order.push((name, down));
                } else {
                    self.shapes[shape].given.insert(name);
                }
            }
            Clause::Where => self.compared(at, shape, name, next, constants),
            Clause::From | Clause::Other => {}
        }
        next
    }

    /// Enters a column by which tables are joined, in each that has it.
    fn joined(&mut self, name: &str) {
        for shape in &mut self.shapes {
            let part = Part::Column(name.to_owned());
            let has = self.tables[shape.table].1.position(name).is_some();
            if has && !shape.equal.iter().any(|known| known.part == part) {
                shape.named.insert(name.to_owned());
                shape.equal.push(Equal { part, constant: None });
            }
        }
    }

    /// Enters a column of a condition.
    fn compared(&mut self, at: usize, shape: usize, name: String, next: usize, constants: &[Option<String>]) {
        let before = at.wrapping_sub(1);
        let function = self
            .tokens
            .get(at.wrapping_sub(2))
            .filter(|_| self.is_mark(before, '(') && self.is_mark(next, ')'));
        let function = function.filter(|word| word.kind == Kind::Word && !word.is_one_of(&NO_FUNCTIONS));
        let (part, first, next) = match function {
            Some(function) => {
                let function = function.text.to_ascii_lowercase();
                (Part::Call { function, column: name.clone() }, at.wrapping_sub(2), next + 1)
            }
            None => (Part::Column(name.clone()), at, next),
        };
        let (behind, before) = (self.comparison(next), self.comparison_before(first));
        let given = &mut self.shapes[shape];
        match behind.or(before) {
            Some(Compared::Equal) => {
                let constant = behind.and_then(|_| constants.get(next + 1).cloned().flatten());
                let constant = constant.filter(|_| matches!(part, Part::Column(_)));
                if !given.equal.iter().any(|known| known.part == part) {
                    given.equal.push(Equal { part, constant });
                }
            }
            Some(Compared::Range) if !given.range.contains(&part) => given.range.push(part),
            Some(Compared::Like) => given.range.push(Part::Beginning(name)),
            _ => drop(given.given.insert(name)),
        }
    }

    /// How what ends before a token is compared with what follows.
    fn comparison(&self, at: usize) -> Option<Compared> {
        let token = self.tokens.get(at)?;
        Some(match token.text {
            "=" => Compared::Equal,
            "<" if self.is_mark(at + 1, '>') || self.is_mark(at + 1, '=') && self.is_mark(at + 2, '>') => {
                return None;
            }
            "<" | ">" => Compared::Range,
            _ if token.is("in") => Compared::Equal,
            _ if token.is("is") && self.is(at + 1, "null") => Compared::Equal,
            _ if token.is("between") => Compared::Range,
            _ if token.is("like") => Compared::Like,
            _ => return None,
        })
    }

    /// How what begins at a token is compared with what is before it.
    fn comparison_before(&self, at: usize) -> Option<Compared> {
        let (before, earlier) = (at.wrapping_sub(1), at.wrapping_sub(2));
        let is = |at: usize, marks: &[char]| marks.iter().any(|mark| self.is_mark(at, *mark));
        if is(before, &['=']) {
            return if is(earlier, &['!']) {
                None
            } else if is(earlier, &['<', '>']) {
                Some(Compared::Range)
            } else {
                Some(Compared::Equal)
            };
        }
        (is(before, &['<', '>']) && !is(earlier, &['<', '-'])).then_some(Compared::Range)
    }
}

#[derive(Clone, Copy)]
enum Compared {
    Equal,
    Range,
    Like,
}
