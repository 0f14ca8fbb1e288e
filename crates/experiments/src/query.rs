//! Two versions of a query, or one query on two targets: which is faster, with the same answer?
//!
//! Before its first trial each query is executed twice. The answers of all queries must be equal, as a multiset of rows or,
//! where all of them are ordered, in order; so must those of targets of one engine. Each answer of a trial is compared with
//! that one. A query that writes is rolled back each time.

use crate::axes::{CLIENTS, STATEMENT};
use crate::explain::{self, Explain, shown};
use crate::prelude::*;
use crate::statement::{raw, raw_texts};
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};
use kurabe_core::driver::Access;
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::raw::{RawPiece, RawStatement};
use kurabe_core::text::cut;
use kurabe_protocol::sql::{self, Dialect, Statement as Sql};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The axis of the queries.
pub const QUERY: &str = "query";
/// The measured operation: one execution, with its whole answer.
const EXECUTE: &str = "execution";
/// Default number of requests: more than most trials reach.
const REQUESTS: u64 = 1_000_000;
/// The characters of a row that an error shows.
const SHOWN: usize = 160;

/// First words of statements that a rollback undoes.
const UNDONE: [&str; 7] = ["insert", "update", "delete", "replace", "merge", "with", "select"];

const ROWS: Metric =
    Metric::new("rows", Unit::Count, Better::Neither, "rows of an answer, or rows that a query changed");

const HOW: AxisInfo = AxisInfo {
    kind: AxisKind::choice(&[
        ("once", "once for each connection"),
        ("per-request", "for every execution"),
        ("literal", "never: it is sent as text each time"),
    ]),
    default: &["once", "literal"],
    ..STATEMENT
};

static OPTIONS: [AxisInfo; 2] = [HOW, CLIENTS];

/// The axes that are options.
pub fn axes() -> &'static [AxisInfo] {
    &OPTIONS
}

/// These queries, each with its name, as the workload of a run.
pub fn workload(queries: Vec<(String, String)>, write: bool) -> CustomWorkload {
    let file = |(name, text)| CustomFile { name, text, weight: 1 };
    CustomWorkload::new(Language::Query, queries.into_iter().map(file).collect(), BTreeMap::new(), write)
}

/// A query.
#[derive(Debug)]
struct Query {
    /// The name of its file, or its number: the value of the axis.
    value: String,
    /// What sentences call it: `a.sql`, `query 2`.
    name: String,
    statement: Arc<RawStatement>,
    /// Whether it may change data.
    writes: bool,
    /// Whether the rows of its answer have an order.
    ordered: bool,
}

impl Query {
    fn read(CustomFile { name: value, text, .. }: &CustomFile, write: bool) -> Result<Self> {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let name = &if is_number { format!("{QUERY} {value}") } else { value.clone() };
        let text = text.trim().trim_end_matches(';').trim_end();
        if Sql::read(text, Dialect::POSTGRES).is_empty() {
            return Err(Error::usage(format!("{name} has no query")));
        }
        if let Some(why) = sql::are_several(text, Dialect::all_of(None)) {
            return Err(Error::usage(format!("{name}: {why}"))
                .hint("a query is one statement; 'kurabe run pgbench -f FILE.sql' runs several"));
        }
        let why = crate::custom::reads::text_asks_for_write(text, None);
        if let Some(why) = why.as_ref().filter(|_| !write) {
            return Err(Error::usage(format!("{name} may change data: {why}"))
                .hint("allow it with --write: each execution is then a transaction that is rolled back"));
        }
        let word = sql::first_word(text, Dialect::POSTGRES).unwrap_or_default().to_ascii_lowercase();
        if why.is_some() && !UNDONE.contains(&word.as_str()) {
            let what = format!("{name}: {} is not undone by a rollback on every engine", word.to_uppercase());
            return Err(Error::usage(what).hint(format!("there are: {}", UNDONE.join(", ").to_uppercase())));
        }
        let Operation::Raw { statement } = raw(name, vec![RawPiece::Text(text.to_owned())]) else {
            return Err(Error::new(ErrorKind::Internal, "a query without a statement"));
        };
        let ordered = sql::Statement::read(text, Dialect::POSTGRES).is_ordered();
        Ok(Self { value: value.clone(), name: name.clone(), statement, writes: why.is_some(), ordered })
    }

    fn operation(&self) -> Operation {
        Operation::Raw { statement: Arc::clone(&self.statement) }
    }
}

/// The experiment of these queries.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if a text is no query.
pub(crate) fn experiment(source: &CustomWorkload) -> Result<Experiment> {
    let queries: Vec<Query> =
        source.files.iter().map(|file| Query::read(file, source.write)).collect::<Result<_>>()?;
    let writes = queries.iter().any(|query| query.writes);
    let name = |query: &Query| -> &'static str { query.value.clone().leak() };
    let names: &'static [&'static str] = queries.iter().map(name).collect::<Vec<_>>().leak();
    let text = |query: &Query| -> &'static str { one_line(&query.statement).leak() };
    let words: Vec<(&str, &str)> =
        names.iter().zip(&queries).map(|(name, query)| (*name, text(query))).collect();
    let axis = AxisInfo::new(QUERY, "the query", AxisKind::choice(words.leak()), names);
    let operation = OperationInfo {
        name: EXECUTE,
        about: if writes {
            "one execution, which is rolled back"
        } else {
            "one execution with its whole answer"
        },
        requests: REQUESTS,
        writes: false,
    };
    let info = ExperimentInfo {
        name: QUERY,
        question: "Which query is faster, with the same answer?",
        about: "Executes each query again and again, and compares each answer with the first one.",
        axes: vec![axis, HOW, CLIENTS].leak(),
        operations: vec![operation].leak(),
        metrics: &[ROWS],
        answer: Answer::Comparison,
        ..ExperimentInfo::BASE
    };
    let shared = Arc::new(Queries { all: queries, writes, first: Mutex::default() });
    let plan = move |cell: &Cell, _: &Dataset| plan(&shared, cell);
    Ok(Experiment::new(Box::leak(Box::new(info)), Box::leak(Box::new(plan))))
}

fn one_line(statement: &RawStatement) -> String {
    let pieces = statement.texts.first().map(|text| text.pieces.as_slice()).unwrap_or_default();
    let text = pieces.iter().map(|piece| if let RawPiece::Text(text) = piece { text.as_str() } else { "" });
    text.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plan(queries: &Arc<Queries>, cell: &Cell) -> Result<PlannedCell> {
    let (name, bind) = (cell.word(QUERY)?, Bind::parse(cell.word(STATEMENT.name)?)?);
    let at = queries.all.iter().position(|query| query.value == name);
    let at = at.ok_or_else(|| Error::new(ErrorKind::Internal, format!("no query '{name}'")))?;
    let access = if queries.writes { Access::ReadWrite } else { Access::ReadOnly };
    let reads = (access == Access::ReadOnly).then_some(Capability::ReadOnlySessions);
    let prepares = (bind != Bind::Once).then_some(Capability::PreparedStatements);
    let undo = queries.writes.then_some([Operation::Begin, Operation::Rollback]).into_iter().flatten();
    let demand = Demand {
        operations: queries.all.iter().map(Query::operation).chain(undo).collect(),
        capabilities: prepares.into_iter().chain(reads).collect(),
        client_bytes: 64_000,
        ..Demand::default()
    };
    let policy = LoopPolicy { access, ..LoopPolicy::new(cell.number(CLIENTS.name)? as usize) };
    let workload = QueryCell { queries: Arc::clone(queries), at, bind };
    Ok(PlannedCell::new(QUERY, demand, policy, workload))
}

/// The queries of a run.
struct Queries {
    all: Vec<Query>,
    /// Whether one of them may change data: then all are executed in the same way.
    writes: bool,
    /// The answer on the first target, and its engine.
    first: Mutex<Option<(String, Answered)>>,
}

/// The answer of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answered {
    rows: Vec<String>,
    changed: u64,
}

impl Answered {
    fn of(reply: &Reply, changed: u64) -> Self {
        Self { rows: (0..reply.rows()).map(|row| row_of(reply, row)).collect(), changed }
    }

    /// How this answer of `name` differs from that of `other`, as a clause; in order, or as multisets.
    fn difference(&self, other: &Self, in_order: bool) -> Option<String> {
        if self.changed != other.changed {
            return Some(format!("it changes {} rows, and not {}", self.changed, other.changed));
        }
        let sorted = |answer: &Self| {
            let mut rows = answer.rows.clone();
            rows.sort_unstable();
            rows
        };
        let (mine, others) = (sorted(self), sorted(other));
        if mine == others {
            let at = self.rows.iter().zip(&other.rows).position(|(a, b)| a != b).filter(|_| in_order)?;
            let [a, b] = [&self.rows[at], &other.rows[at]].map(|row| cut(row, SHOWN));
            return Some(format!("row {} is ({a}), and not ({b}): the rows are in another order", at + 1));
        }
        let counts = match (self.rows.len(), other.rows.len()) {
            (a, b) if a == b => String::new(),
            (a, b) => format!("{} rows, and not {}; ", units::count(a as u64), units::count(b as u64)),
        };
        let at = mine.iter().zip(&others).position(|(a, b)| a != b);
        let at = at.unwrap_or_else(|| mine.len().min(others.len()));
        Some(match (mine.get(at), others.get(at)) {
            (Some(row), Some(missing)) if row < missing => {
                format!("{counts}only it has the row ({})", cut(row, SHOWN))
            }
            (_, Some(missing)) => format!("{counts}it lacks the row ({})", cut(missing, SHOWN)),
            (Some(row), None) => format!("{counts}only it has the row ({})", cut(row, SHOWN)),
            (None, None) => counts,
        })
    }

    /// What each answer of a trial must have.
    fn digest(&self) -> (u64, u64, u64) {
        let sum = self.rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(hash(row.as_bytes())));
        (self.rows.len() as u64, sum, self.changed)
    }
}

/// A row as text. A decimal number has no zeros at its end: `AVG` and a quotient may differ in them.
fn row_of(reply: &Reply, row: usize) -> String {
    let field = |at: usize| {
        reply.field(row, at).map_or_else(String::new, |value| {
            let text = shown(value);
            let is_decimal =
                text.contains('.') && text.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
            if is_decimal { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        })
    };
    (0..reply.width()).map(field).collect::<Vec<_>>().join(" | ")
}

/// A digest of a row. Sums of it are compared, so that it is mixed well.
fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

/// What is known of the queries on a target.
struct Known {
    /// The digest of the answer.
    digest: (u64, u64, u64),
    plans: Vec<Option<QueryPlan>>,
}

/// A cell: one of the queries.
struct QueryCell {
    queries: Arc<Queries>,
    at: usize,
    bind: Bind,
}

impl Queries {
    /// Executes a query once. `again`: the answer of the query that it is compared with.
    fn execute(&self, query: &Query, session: &mut dyn Session) -> Result<Answered> {
        let mut statement = Execution::new(query, self.writes, Bind::InOne);
        statement.attach(session)?;
        statement.run(session)?;
        let answered = Answered::of(&statement.reply, statement.reply.affected() * u64::from(self.writes));
        statement.query.detach(session)?;
        Ok(answered)
    }

    /// The answer that all queries have.
    fn answer(&self, session: &mut dyn Session) -> Result<Answered> {
        let in_order = self.all.iter().all(|query| query.ordered);
        let mut first: Option<(&str, Answered)> = None;
        for query in &self.all {
            let name = query.name.as_str();
            let answered = self.execute(query, session)?;
            if let Some(how) = self.execute(query, session)?.difference(&answered, false) {
                return Err(Error::usage(format!("{name}: its second answer differs from its first: {how}"))
                    .hint("a query can be compared if its answer depends on nothing but the data: no time, no chance, no LIMIT without ORDER BY"));
            }
            match &first {
                None => first = Some((name, answered)),
                Some((of, first)) => {
                    if let Some(how) = answered.difference(first, in_order) {
                        return Err(Error::mismatch(format!(
                            "{name}: its answer differs from that of {of}: {how}"
                        )));
                    }
                }
            }
        }
        Ok(first.unwrap_or_default().1)
    }

    /// Compares the answer with that on the first target, if both are of one engine; otherwise the number of rows.
    fn compare(&self, answered: Answered, session: &mut dyn Session) -> Result<Answered> {
        let engine = engine_of(session)?;
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((known, before)) = &*first else {
            *first = Some((engine, answered.clone()));
            return Ok(answered);
        };
        let name = self.all.first().map_or("", |query| &query.name);
        let different = if *known == engine {
            answered.difference(before, self.all.iter().all(|query| query.ordered))
        } else {
            let [mine, others] = [&answered, before].map(|answer| answer.rows.len() as u64);
            (mine != others).then(|| format!("{} rows, and not {}", units::count(mine), units::count(others)))
        };
        different.map_or(Ok(answered), |how| {
            Err(Error::mismatch(format!("{name}: its answer differs from that of another target: {how}")))
        })
    }
}

/// The word of the session's engine.
fn engine_of(session: &mut dyn Session) -> Result<String> {
    let name = |engine: &str| vec![RawPiece::Text(format!("SELECT '{engine}'"))];
    let of = |engine: &'static str| (Some(engine), name(engine));
    let operation =
        raw_texts("engine", [of("postgres"), of("mysql"), of("sqlite"), of("oracle"), (None, name(""))]);
    let mut statement = Statement::new(operation, Bind::InOne);
    statement.attach(session)?;
    let mut reply = Reply::new();
    statement.execute(session, &[], &mut reply)?;
    statement.detach(session)?;
    Ok(row_of(&reply, 0))
}

impl Workload for QueryCell {
    fn load(&self, _: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        // An error of a query, and answers that differ, end the run.
        let of_user = |error: Error| {
            let is_of_user = error.server_code().is_some() || error.kind() == ErrorKind::Mismatch;
            if is_of_user { error.with_kind(ErrorKind::Usage) } else { error }
        };
        let answered = self.queries.answer(session).map_err(of_user)?;
        let answered = self.queries.compare(answered, session).map_err(of_user)?;
        let mut plans = Vec::new();
        for query in &self.queries.all {
            // A query that writes is not executed for its plan.
            let how = if self.queries.writes { Explain::Plan } else { Explain::Execute };
            plans.push(explain::plan(session, &query.name, &query.statement, &[], how)?);
        }
        Ok(DatasetState::new(Known { digest: answered.digest(), plans }))
    }

    fn transaction(&self, _: &str, state: &DatasetState, _: Client) -> Result<Box<dyn Transaction>> {
        let query = &self.queries.all[self.at];
        let execution = Execution::new(query, self.queries.writes, self.bind);
        Ok(Box::new(QueryTransaction {
            execution,
            digest: state.get::<Known>()?.digest,
            name: query.name.clone(),
        }))
    }

    fn after(&self, After { state, .. }: After<'_>) -> Result<Checked> {
        let known = state.get::<Known>()?;
        let plans = known.plans.get(self.at).cloned().flatten().into_iter().collect();
        let rows = known.digest.0.max(known.digest.2);
        Ok(Checked { plans, metrics: vec![ROWS.value(rows as f64)], ..Checked::default() })
    }
}

/// A query on one connection, between the begin and the rollback of a transaction if it may change data.
struct Execution {
    query: Statement,
    around: Option<[Statement; 2]>,
    reply: Reply,
    other: Reply,
    name: String,
}

impl Execution {
    fn new(query: &Query, writes: bool, bind: Bind) -> Self {
        let other = |operation| Statement::new(operation, Bind::InOne);
        Self {
            query: Statement::new(query.operation(), bind),
            around: writes.then(|| [Operation::Begin, Operation::Rollback].map(other)),
            reply: Reply::new(),
            other: Reply::new(),
            name: query.name.clone(),
        }
    }

    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        for statement in self.around.iter_mut().flatten() {
            statement.attach(session)?;
        }
        self.query.attach(session).map_err(|error| error.context(&self.name))
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let Self { query, around, reply, other, .. } = self;
        let Some([begin, rollback]) = around else {
            return query.execute(session, &[], reply).map_err(|error| error.context(&self.name));
        };
        begin.execute(session, &[], other)?;
        let done = query.execute(session, &[], reply);
        let undone = rollback.execute(session, &[], other);
        done.map_err(|error| error.context(&self.name)).and(undone)
    }
}

struct QueryTransaction {
    execution: Execution,
    digest: (u64, u64, u64),
    name: String,
}

impl Transaction for QueryTransaction {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.execution.attach(session)
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        self.execution.run(session)
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        let Execution { reply, around, .. } = &self.execution;
        let found = Answered::of(reply, reply.affected() * u64::from(around.is_some())).digest();
        if found == self.digest {
            return Ok(());
        }
        let rows = |(rows, ..): (u64, u64, u64)| units::count(rows);
        Err(Error::mismatch(format!(
            "{}: an answer differs from the first one: {} rows, and not the same {}",
            self.name,
            rows(found),
            rows(self.digest)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(rows: &[&str]) -> Answered {
        Answered { rows: rows.iter().map(|row| (*row).to_owned()).collect(), changed: 0 }
    }

    #[test]
    fn answers_are_multisets_or_in_order_and_the_first_difference_is_shown() {
        let first = answered(&["1 | a", "2 | b", "2 | b"]);
        for (other, in_order, part) in [
            (answered(&["2 | b", "1 | a", "2 | b"]), false, None),
            (answered(&["2 | b", "1 | a", "2 | b"]), true, Some("row 1 is (2 | b), and not (1 | a)")),
            (answered(&["1 | a", "2 | b"]), false, Some("2 rows, and not 3; it lacks the row (2 | b)")),
            (answered(&["1 | a", "2 | b", "2 | b", "3 | c"]), false, Some("only it has the row (3 | c)")),
            (answered(&["1 | a", "2 | b", "2 | a"]), false, Some("only it has the row (2 | a)")),
        ] {
            let found = other.difference(&first, in_order);
            match part {
                None => assert_eq!(found, None),
                Some(part) => assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{found:?}"),
            }
            let same = other.digest() == first.digest();
            assert_eq!(same, part.is_none() || in_order, "{other:?}");
        }
    }

    #[test]
    fn what_is_no_query_or_writes_is_refused() {
        let read = |text: &str, write: bool| {
            let file = CustomFile { name: "a.sql".to_owned(), text: text.to_owned(), weight: 1 };
            Query::read(&file, write)
        };
        for (text, part) in [
            ("-- nothing\n", "a.sql has no query"),
            ("SELECT 1; SELECT 2", "more than one"),
            ("DELETE FROM t", "allow it with --write"),
        ] {
            let error = read(text, false).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(read("CREATE TABLE t (a int)", true).unwrap_err().to_string().contains("rollback"));
        let query = read("SELECT a\nFROM t ORDER BY a;\n", false).unwrap();
        assert!(query.ordered && !query.writes && read("DELETE FROM t", true).unwrap().writes);
        assert_eq!(one_line(&query.statement), "SELECT a FROM t ORDER BY a");
    }
}
