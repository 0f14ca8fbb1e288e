//! A cell as the engine sees it: loads the table where it belongs, creates the link, and reads range after range.

use super::content::LinkText;
use super::info::{RECORDS, ROW, Texts, Way, server};
use crate::axes::CLIENTS;
use crate::fill;
use crate::prelude::*;
use crate::readback::{self, rows_are};
use crate::rows::{self, LOADED, Rows};
use kurabe_core::collection::Charset;
use kurabe_core::remote::{Link, RemoteCollection, RemoteServer};
use std::collections::HashSet;
use std::time::Instant;

/// Bytes of a row beside its data, at most.
const ROW_HEAD: u64 = 64;

/// The table of a cell and how it is read.
pub(super) struct LinkWorkload(Arc<Table>);

struct Table {
    /// The table with the rows.
    source: Rows<LinkText>,
    /// What reads it over the link, if the cell has one.
    linked: Option<Arc<Collection>>,
    /// Rows of a read.
    batch: u64,
}

impl LinkWorkload {
    pub(super) fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let (way, server, texts) = (Way::of(cell)?, server(cell)?, Texts::of(cell)?);
        let (batch, bytes) = (cell.number("batch")?, cell.number("row-bytes")?);
        let records = dataset.records.unwrap_or(RECORDS);
        if batch > records {
            let why = format!("--batch {batch} exceeds the {records} rows of the table");
            return Err(Error::unsupported(why));
        }
        let fetch = match cell.get("fetch") {
            Some(AxisValue::Number(rows)) => Some(*rows),
            _ => None,
        };
        if fetch.is_some() && !matches!(way, Way::Link(_)) {
            return Err(Error::unsupported("without a link there is no fetch size"));
        }
        if way == Way::Direct && server == RemoteServer::Same {
            return Err(Error::unsupported(
                "on the same server the client's own read is that of the local table",
            ));
        }
        if texts.linked != Charset::default() && !matches!(way, Way::Link(_)) {
            return Err(Error::unsupported("without a link there is one table, and one character set"));
        }
        let is_here = way == Way::Local || server == RemoteServer::Same;
        let place = if is_here { String::new() } else { format!("_{}", server.name().replace('-', "_")) };
        let name = format!("kurabe_{}_link_{bytes}{}{place}", dataset.slot, texts.suffix());
        let remote = (!is_here).then_some(RemoteCollection { server, link: None });
        let source = Arc::new(Collection {
            remote,
            charset: texts.source,
            ..rows::collection(name.clone(), bytes as u32)
        });
        let linked = match way {
            Way::Local | Way::Direct => None,
            Way::Link(way) => {
                let fetched = fetch.map_or_else(String::new, |rows| format!("_{rows}"));
                let to = if texts.linked == Charset::Latin1 { "_t" } else { "" };
                let name = format!("{name}{to}_{}{fetched}", way.replace('-', "_"));
                let remote =
                    RemoteCollection { server, link: Some(Link { way, source: source.name.clone(), fetch }) };
                let (remote, charset) = (Some(remote), texts.linked);
                Some(Arc::new(Collection { remote, charset, ..rows::collection(name, bytes as u32) }))
            }
        };
        let data = LinkText::new(dataset.seed, bytes, texts.accented);
        let source = Rows { collection: source, data, records };
        let table = Table { source, linked, batch };
        let row = bytes + ROW_HEAD;
        let demand = Demand {
            capabilities: Vec::from_iter(texts.needs_latin1().then_some(Capability::Latin1)),
            request_bytes: row * batch.max(table.source.per_request()),
            loaded_bytes: records * row,
            client_bytes: batch * row + 64_000,
            ..table.source.demand(table.operations())
        };
        let policy = LoopPolicy::new(cell.number(CLIENTS.name)? as usize);
        let needs = (way != Way::Local).then_some(Need::Remote(server)).into_iter().collect();
        let planned = PlannedCell::new(name, demand, policy, Self(Arc::new(table)));
        Ok(PlannedCell { needs, stored_bytes: Some(bytes), ..planned })
    }
}

fn range(collection: &Arc<Collection>) -> Operation {
    Operation::FindRange { collection: Arc::clone(collection), by: 0, fields: vec![0, 1] }
}

impl Table {
    /// The operations that a cell prepares besides those of the load.
    fn operations(&self) -> Vec<Operation> {
        let mut all = vec![range(&self.source.collection)];
        if let Some(linked) = &self.linked {
            all.extend([range(linked), Operation::Count { collection: Arc::clone(linked) }]);
        }
        all
    }

    /// The collection that the transaction reads.
    fn read_from(&self) -> &Arc<Collection> {
        self.linked.as_ref().unwrap_or(&self.source.collection)
    }

    /// The number of different ranges.
    fn ranges(&self) -> u64 {
        self.source.records.div_ceil(self.batch)
    }

    /// The first key of a range. The last range overlaps the one before it if the rows cannot be divided equally.
    fn first(&self, range: u64) -> u64 {
        1 + (range * self.batch).min(self.source.records - self.batch)
    }
}

/// The names of the links that were created.
type Links = HashSet<String>;

impl Workload for LinkWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        self.0.source.load(namespace, session)?;
        Ok(DatasetState::new(Links::new()))
    }

    /// Creates the link before its first trial. Cells with other links share the table.
    fn before(&self, Before { state, namespace, session, .. }: Before<'_>) -> Result<()> {
        let Some(linked) = &self.0.linked else { return Ok(()) };
        let links = state.get_mut::<Links>()?;
        if links.contains(&linked.name) {
            return Ok(());
        }
        namespace.create(linked)?;
        let counted = fill::check_count(session, linked, self.0.source.records, "rows");
        counted.map_err(|error| error.context("through the link"))?;
        links.insert(linked.name.clone());
        Ok(())
    }

    fn transaction(&self, _: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        // Clients read different ranges.
        let next = self.0.ranges() * client.index as u64 / client.count.max(1) as u64;
        Ok(Box::new(Reader {
            table: Arc::clone(&self.0),
            statement: Statement::new(range(self.0.read_from()), Bind::Once),
            reply: Reply::new(),
            next,
            first: 1,
        }))
    }
}

/// A client that reads the whole table, range after range, and begins again.
struct Reader {
    table: Arc<Table>,
    statement: Statement,
    reply: Reply,
    /// The next range.
    next: u64,
    /// The first key of the current range.
    first: u64,
}

impl Transaction for Reader {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.detach(session)
    }

    fn prepare_input(&mut self) {
        self.first = self.table.first(self.next);
        self.next = (self.next + 1) % self.table.ranges();
    }

    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        let first = self.first as i64;
        let bounds = [Value::Int(first), Value::Int(first + self.table.batch as i64)];
        let began = Instant::now();
        self.statement.execute(session, &bounds, &mut self.reply)?;
        recorder.span(ROW.name, self.table.batch, began.elapsed());
        Ok(())
    }

    /// Compares each row: its key, and its data byte for byte.
    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        let keys = self.first as i64..(self.first + self.table.batch) as i64;
        rows_are(keys.clone(), &self.reply)?;
        for (row, key) in keys.enumerate() {
            let data = self.reply.field_bytes(row, 1).ok_or_else(|| readback::wrong_rows(key, 1))?;
            self.table.source.data.check(key as u64, LOADED, data)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::info::INFO;
    use super::*;

    fn planned(values: &[(&str, &str)], records: u64) -> Result<PlannedCell> {
        let cell = INFO.baseline(values).unwrap();
        LinkWorkload::plan(&cell, &Dataset { seed: 1, records: Some(records), slot: 3 })
    }

    fn refusal(values: &[(&str, &str)], records: u64) -> String {
        planned(values, records).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn cells_with_one_source_share_it_and_each_link_has_a_name() {
        let name = |way: &str, place: &str, fetch: &str| {
            let cell = planned(&[("way", way), ("where", place), ("fetch", fetch)], 9_000).unwrap();
            let linked = cell.demand.operations.iter().filter_map(Operation::collection);
            let linked = linked.filter(|collection| collection.link().is_some());
            let name = linked.map(|collection| collection.name.clone()).next_back();
            (cell.dataset.clone(), name.unwrap_or_default(), cell.remote())
        };
        let (own, far) = ("kurabe_3_link_1000".to_owned(), "kurabe_3_link_1000_second".to_owned());
        assert_eq!(name("local", "second", "default"), (own.clone(), String::new(), None));
        assert_eq!(name("direct", "second", "default").0, far);
        let second = Some(RemoteServer::Second);
        assert_eq!(name("fdw", "second", "default"), (far.clone(), format!("{far}_fdw"), second));
        assert_eq!(name("fdw", "second", "50"), (far.clone(), format!("{far}_fdw_50"), second));
        assert_eq!(
            name("fdw", "same", "default"),
            (own.clone(), format!("{own}_fdw"), Some(RemoteServer::Same))
        );
        assert!(Collection::name_is_ours(&name("database-link", "remote", "default").1));
    }

    #[test]
    fn tables_have_the_character_sets_of_their_cell() {
        use Charset::{Latin1, Unicode};
        let of = |charset: &str| {
            let values = [("way", "federated"), ("where", "second"), ("charset", charset)];
            let cell = planned(&values, 9_000).unwrap();
            let collections: Vec<_> =
                cell.demand.operations.iter().filter_map(Operation::collection).collect();
            let (source, linked) = (collections[0], *collections.last().unwrap());
            let name = linked.name.trim_start_matches("kurabe_3_link_1000").to_owned();
            (name, source.charset, linked.charset, cell.demand.capabilities.len())
        };
        assert_eq!(of("ascii"), ("_second_federated".to_owned(), Unicode, Unicode, 0));
        assert_eq!(of("utf8"), ("_u_second_federated".to_owned(), Unicode, Unicode, 0));
        assert_eq!(of("latin1"), ("_l_second_federated".to_owned(), Latin1, Unicode, 1));
        assert_eq!(of("to-latin1"), ("_u_second_t_federated".to_owned(), Unicode, Latin1, 1));
        let long = [
            ("way", "database-link"),
            ("where", "second"),
            ("charset", "to-latin1"),
            ("row-bytes", "1000000"),
            ("fetch", "1000000"),
        ];
        let cell = planned(&long, 9_000).unwrap();
        let names = cell.demand.operations.iter().filter_map(Operation::collection);
        assert!(names.clone().all(|collection| Collection::name_is_ours(&collection.name)));
    }

    #[test]
    fn meaningless_cells_have_reasons() {
        assert!(refusal(&[("way", "direct"), ("where", "same")], 9_000).contains("that of the local table"));
        assert!(refusal(&[("fetch", "50")], 9_000).contains("no fetch size"));
        assert!(refusal(&[("charset", "to-latin1")], 9_000).contains("one character set"));
        assert!(refusal(&[("batch", "5000")], 4_999).contains("exceeds the 4999 rows"));
    }

    #[test]
    fn ranges_cover_every_row() {
        let table = Table {
            source: Rows::new("kurabe_0_a".to_owned(), LinkText::new(1, 16, false), 1_000),
            linked: None,
            batch: 300,
        };
        let firsts: Vec<u64> = (0..table.ranges()).map(|range| table.first(range)).collect();
        assert_eq!(firsts, [1, 301, 601, 701]);
    }
}
