//! One client of a custom workload: it draws a transaction and its values, runs it, and checks the answers.

use super::check;
use super::datum::{Datum, truth, whole};
use super::declared::{Program, Step};
use super::drawn::Drawn;
use super::request::{Execute, Request};
use super::shared::{Example, Seen, Shared};
use super::slot::{Slot, Values, parameter};
use super::variables::{CLIENT_ID, CLIENTS, DEFAULT_SEED, NOW, RANDOM_SEED};
use crate::prelude::*;
use crate::statement::recycle;
use kurabe_core::units;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Codes of errors of a parameter where no parameter can be, or whose type is not known: PostgreSQL's, and MySQL's.
const NO_PARAMETER: [&str; 8] = ["42P01", "42601", "42725", "42804", "42883", "42P18", "1064", "1146"];

/// The number of statements of a workload whose plans are asked for.
const EXAMPLES: usize = 12;

/// How values get to where no parameter can be.
pub(super) const AS_TEXT: &str = "values are parameters here; with --statement literal (pgbench's -M simple, its default) \
                                  they are put into the text as they are, so that a value which contains SQL is executed";

pub(super) struct CustomTransaction {
    shared: Arc<Shared>,
    state: State,
}

struct PendingRequest {
    /// The number of its statement.
    statement: usize,
    reply: Reply,
    /// The variables that the check of the answer reads and that may change before, with their values at the time of
    /// the request.
    seen: Vec<(usize, Slot)>,
}

struct State {
    values: Drawn,
    /// The variable that holds the timestamp, if a transaction uses it.
    now: Option<usize>,
    scratch: Vec<u8>,
    /// One of each distinct request, so that it is prepared once, with the place of the first step that makes it.
    statements: Vec<(Statement, Option<String>)>,
    /// By transaction and step; `None` for a step without a request.
    asked: Vec<Vec<Option<PendingRequest>>>,
    /// The number of the rollback statement, if a transaction may need it.
    rollback: Option<usize>,
    /// By transaction: the variables that it changes after its first request, with their values at that time. A retry
    /// begins with the same values and the same draws.
    begun: Vec<Vec<(usize, Slot)>>,
    parameters: Vec<Value<'static>>,
    /// Whether the workload declares no tables: pgbench's own must exist.
    lacks_tables: bool,
    program: usize,
    at: usize,
    failed: Option<Error>,
    /// The steps of this transaction that made a request.
    ran: Vec<usize>,
}

impl CustomTransaction {
    pub(super) fn new(shared: &Arc<Shared>, bind: Bind, client: Client) -> Self {
        let declared = &shared.declared;
        let mut statements: Vec<(Statement, Option<String>)> = Vec::new();
        let mut number = |operation: Operation, place: Option<&String>| {
            let known = statements.iter().position(|(known, _)| same(&known.operation, &operation));
            known.unwrap_or_else(|| {
                statements.push((Statement::new(operation, bind), place.cloned()));
                statements.len() - 1
            })
        };
        let empty = |slot: usize| (slot, Slot::default());
        let mut asked: Vec<Vec<Option<PendingRequest>>> = Vec::with_capacity(declared.programs.len());
        for program in &declared.programs {
            let request = |(at, step): (usize, &Step)| {
                let Step::Execute(execute) = step else { return None };
                let operation = execute.request.operation(&shared.relations, &execute.place);
                let statement = number(operation, Some(&execute.place));
                let changed = program.changed_from(at);
                let needed = execute.checked_by().into_iter().filter(|slot| changed.contains(slot));
                Some(PendingRequest { statement, reply: Reply::new(), seen: needed.map(empty).collect() })
            };
            asked.push(program.steps.iter().enumerate().map(request).collect());
        }
        let begun = declared.programs.iter().map(|program| {
            let retried = !program.retry.is_empty();
            let changed = if retried { program.changed_from(0) } else { Vec::new() };
            changed.into_iter().map(empty).collect()
        });
        let begun = begun.collect();
        let retried = declared.programs.iter().any(|program| !program.retry.is_empty());
        let rollback = retried.then(|| number(Operation::Rollback, None));
        let mut slots: Vec<Slot> = shared.initial.iter().map(Slot::of).collect();
        let mut give = |name: &str, value: i64| {
            // A value that the user set is kept.
            if let Some(slot) = declared.variables.find(name).filter(|slot| slots[*slot].datum == Datum::Null)
            {
                slots[slot].set(Datum::Int(value));
            }
        };
        // pgbench's seeds are positive integers.
        let seed = (shared.seed >> 1) as i64;
        give(CLIENT_ID, client.index as i64);
        give(CLIENTS, client.count as i64);
        give(RANDOM_SEED, seed);
        give(DEFAULT_SEED, seed);
        let state = State {
            values: Drawn::new(declared, client, slots),
            now: declared.variables.find(NOW),
            scratch: Vec::new(),
            statements,
            asked,
            rollback,
            begun,
            parameters: Vec::new(),
            lacks_tables: declared.relations.is_empty(),
            program: 0,
            at: 0,
            failed: None,
            ran: Vec::with_capacity(
                declared.programs.iter().map(|program| program.steps.len()).max().unwrap_or(0),
            ),
        };
        Self { shared: Arc::clone(shared), state }
    }
}

impl Transaction for CustomTransaction {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        for (statement, place) in &mut self.state.statements {
            if let Err(error) = statement.attach_or_defer(session) {
                let error = explained(error, &statement.operation, self.state.lacks_tables);
                let place = place.as_ref().filter(|_| error.server_code().is_some());
                return Err(place.map_or(error.clone(), |place| error.context(place)));
            }
        }
        Ok(())
    }

    #[inline]
    fn prepare_input(&mut self) {
        let programs = &self.shared.declared.programs;
        let state = &mut self.state;
        let mut ticket = if programs.len() > 1 { state.values.rng.below(self.shared.weights) } else { 0 };
        state.program = 0;
        while let Some(program) = programs.get(state.program)
            && ticket >= program.weight
            && state.program + 1 < programs.len()
        {
            ticket -= program.weight;
            state.program += 1;
        }
        state.at = 0;
        state.ran.clear();
        if let Some(slot) = state.now {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            state.values.slots[slot].set(Datum::Time(now.as_micros() as i64));
        }
        // The steps before the first request run before the request is timed.
        while let Some(Step::Set { slot, source, place }) = programs[state.program].steps.get(state.at) {
            if let Err(error) = state.values.set(*slot, source, place) {
                state.failed = Some(error);
                return;
            }
            state.at += 1;
        }
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        if let Some(error) = self.state.failed.take() {
            return Err(error);
        }
        let programs = &self.shared.declared.programs;
        let program = &programs[self.state.program];
        let began = (programs.len() > 1 && recorder.measures()).then(Instant::now);
        if program.retry.is_empty() {
            self.state.run(program, session)?;
        } else {
            self.state.run_again(program, session, recorder)?;
        }
        // What it wrote would be lost when the connection closes, or be committed with the next transaction on some engines.
        if session.in_transaction() == Some(true) {
            return Err(unfinished(program));
        }
        if let Some(began) = began {
            let took = began.elapsed();
            recorder.notes(|| Seen::new(&self.shared)).times.record(self.state.program, took);
        }
        Ok(())
    }

    #[inline]
    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        let program = &self.shared.declared.programs[self.state.program];
        self.state.check(program, &self.shared, recorder)
    }
}

/// The error of a transaction that the server still has open when its steps are over.
#[cold]
fn unfinished(program: &Program) -> Error {
    let what = format!(
        "the server has a transaction open at the end of '{}': what it wrote is not committed",
        program.name
    );
    Error::new(ErrorKind::Server, what).hint(
        "end it with COMMIT or ROLLBACK, or the steps \"commit\" or \"rollback\"; COMMIT AND CHAIN, and autocommit = 0, begin one too",
    )
}

/// The error of a statement that cannot be prepared, with how to create pgbench's tables if it is about one of them, and with the mode
/// in which pgbench puts values into the text if it may be of a value that is a parameter.
#[cold]
fn explained(error: Error, operation: &Operation, lacks_tables: bool) -> Error {
    let is_missing = lacks_tables && error.to_string().to_ascii_lowercase().contains("pgbench_");
    let error = if is_missing {
        error.hint("create pgbench's tables for the run with --init, or before it with 'pgbench -i'")
    } else {
        error
    };
    let code = error.server_code().filter(|code| NO_PARAMETER.contains(code));
    if operation.parameters() == 0 || code.is_none() {
        return error;
    }
    error.hint(AS_TEXT)
}

impl State {
    fn run(&mut self, program: &Program, session: &mut dyn Session) -> Result<()> {
        while let Some(step) = program.steps.get(self.at) {
            let mut next = self.at + 1;
            match step {
                Step::Execute(execute) => self.execute(execute, session)?,
                Step::Set { slot, source, place } => self.values.set(*slot, source, place)?,
                Step::Sleep { time, unit, place } => {
                    let time = self.values.value(time, place).and_then(whole)?;
                    kurabe_reactor::sleep(Duration::from_nanos(time.max(0) as u64 * unit));
                }
                Step::Unless { condition, to, place } => {
                    if !truth(self.values.value(condition, place)?) {
                        next = *to;
                    }
                }
                Step::Jump(to) => next = *to,
            }
            self.at = next;
        }
        Ok(())
    }

    /// Runs it until it succeeds, as long as the server's error code allows a retry.
    fn run_again(
        &mut self,
        program: &Program,
        session: &mut dyn Session,
        recorder: &mut Recorder,
    ) -> Result<()> {
        let (begin, rng) = (self.at, self.values.rng.clone());
        for (slot, was) in &mut self.begun[self.program] {
            was.copy(&self.values.slots[*slot]);
        }
        let (started, limit) = (Instant::now(), kurabe_core::driver::ConnectOptions::default().timeout);
        let mut tried = 0;
        loop {
            let Err(error) = self.run(program, session) else { return Ok(()) };
            let is_retried =
                error.server_code().is_some_and(|code| program.retry.iter().any(|known| known == code));
            match program.retries {
                _ if !is_retried => return Err(error),
                Some(retries) if tried >= retries => return Err(error),
                None if started.elapsed() > limit => {
                    let what = format!(
                        "tried {} times in {}, the limit of --timeout",
                        tried + 1,
                        units::time(limit)
                    );
                    return Err(error.context(what));
                }
                _ => tried += 1,
            }
            // Where nothing ran there is no transaction.
            if let Some(number) = self.rollback.filter(|_| !self.ran.is_empty()) {
                // Some engines roll it back automatically, and may reject another
                // rollback (SQLite).
                match self.statements[number].0.execute(session, &[], &mut Reply::new()) {
                    Err(error) if error.server_code().is_none() => return Err(error),
                    _ => {}
                }
            }
            recorder.retried();
            self.at = begin;
            self.ran.clear();
            self.values.rng = rng.clone();
            for (slot, was) in &self.begun[self.program] {
                self.values.slots[*slot].copy(was);
            }
        }
    }

    #[inline]
    fn execute(&mut self, execute: &Execute, session: &mut dyn Session) -> Result<()> {
        let Self {
            statements,
            asked,
            values: Drawn { slots, .. },
            parameters,
            ran,
            program,
            at,
            lacks_tables,
            ..
        } = self;
        let Some(Some(asked)) = asked.get_mut(*program).and_then(|steps| steps.get_mut(*at)) else {
            return Err(Error::new(ErrorKind::Internal, "a step lacks its statement"));
        };
        for (slot, seen) in &mut asked.seen {
            seen.copy(&slots[*slot]);
        }
        let now = Values { now: slots, seen: &[] };
        let mut values: Vec<Value<'_>> = std::mem::take(parameters);
        values.extend(execute.parameters.iter().map(|wanted| parameter(wanted, now)));
        let statement = &mut statements[asked.statement].0;
        let ready = if statement.is_deferred() { prepare(statement, session, *lacks_tables) } else { Ok(()) };
        let done = ready.and_then(|()| statement.execute(session, &values, &mut asked.reply));
        *parameters = recycle(values);
        done.map_err(|error| error.context(&execute.place))?;
        ran.push(*at);
        for (column, slot) in &execute.keep {
            let place = &execute.place;
            let none =
                || Error::mismatch(format!("{place}: the answer has no row from which to keep a value"));
            let value = asked.reply.field(0, *column).ok_or_else(none)?;
            slots[*slot].set_value(value).map_err(|error| error.context(place))?;
        }
        Ok(())
    }

    fn check(&mut self, program: &Program, shared: &Shared, recorder: &mut Recorder) -> Result<()> {
        let asked = &self.asked[self.program];
        let of = |step: usize| match (program.steps.get(step), asked.get(step)) {
            (Some(Step::Execute(execute)), Some(Some(asked))) => Some((&**execute, asked)),
            _ => None,
        };
        let mut begun = 0;
        for (number, step) in self.ran.iter().enumerate() {
            let Some((execute, PendingRequest { reply, seen, .. })) = of(*step) else { continue };
            let values = Values { now: &self.values.slots, seen };
            check::answer(execute, reply, values)?;
            if let Request::Get(relation, fields) = &execute.request {
                let key = execute.parameters.first().map(|key| parameter(key, values));
                shared
                    .check_made(*relation, fields, key, reply, &mut self.scratch)
                    .map_err(|e| e.context(&execute.place))?;
            }
            if execute.request.writes() {
                recorder.rows_written(reply.affected());
            }
            let noted = recorder.notes(|| Seen::new(shared));
            let is_example = |known: &Example| (known.program, known.step) == (self.program, *step);
            if noted.examples.len() < EXAMPLES && !noted.examples.iter().any(is_example) {
                let texts = execute.parameters.iter().map(|wanted| literal(parameter(wanted, values)));
                let values = texts.collect();
                noted.examples.push(Example { program: self.program, step: *step, values });
            }
            let tally = &mut noted.tally;
            count(execute, reply, tally, 1);
            match execute.request {
                Request::Begin => begun = number,
                // Discards what the transaction did since.
                Request::Rollback => {
                    for (execute, asked) in self.ran[begun..number].iter().filter_map(|step| of(*step)) {
                        count(execute, &asked.reply, tally, -1);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A value as a text of SQL; `None` of one that engines write in several ways.
#[cold]
fn literal(value: Value<'_>) -> Option<String> {
    let quoted = |text: &str| {
        let is_plain = !text.contains(['\'', '\\', '\0']);
        is_plain.then(|| format!("'{text}'"))
    };
    match value {
        Value::Null => Some("NULL".to_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(value) => Some(if value { "TRUE" } else { "FALSE" }.to_owned()),
        Value::Text(text) => quoted(text),
        Value::Bytes(_) | Value::Time(_) => None,
    }
}

/// Prepares a statement that could not be prepared when its connection was opened.
#[cold]
fn prepare(statement: &mut Statement, session: &mut dyn Session, lacks_tables: bool) -> Result<()> {
    statement.attach(session).map_err(|error| explained(error, &statement.operation, lacks_tables))
}

/// Whether two steps make the same request, so that one prepared statement serves both.
fn same(one: &Operation, other: &Operation) -> bool {
    match (one, other) {
        // The database does not see the place in the file.
        (Operation::Raw { statement: one }, Operation::Raw { statement: other }) => {
            one.texts == other.texts && one.parameters == other.parameters
        }
        (one, other) => one == other,
    }
}

/// Adds inserted rows and subtracts deleted rows, or the reverse.
fn count(execute: &Execute, reply: &Reply, tally: &mut [i64], sign: i64) {
    let rows = reply.affected() as i64 * sign;
    if let Some(relation) = execute.adds {
        tally[relation] += rows;
    }
    if let Some(relation) = execute.removes {
        tally[relation] -= rows;
    }
}
