//! `connect` through an application: each page makes one read. The axis varies the application's connections to its
//! database. Clients keep theirs to the application, so that nothing else differs.

use super::INFO;
use crate::point::{LENGTH, NEW, READ, content};
use crate::prelude::*;
use crate::rows::LOADED;
use crate::via::{Added, PageClient, PageSet, ReadRows, Rows, path};

pub(super) struct ConnectPages {
    /// The page that reads.
    page: &'static str,
    /// The application's required setting, if the page itself does not select it.
    held: Option<NeededSetting>,
}

impl ConnectPages {
    pub(super) fn new(cell: &Cell) -> Result<Self> {
        let held = |value: String, options: &str| NeededSetting {
            name: "connection".to_owned(),
            value,
            remedy: format!("start it with {options}"),
        };
        let (page, held) = match cell.word("connection")? {
            "per-request" => (NEW, None),
            "pool" => {
                let size = cell.number("pool")?;
                (READ, Some(held(format!("pool of {size}"), &format!("--connection pool --pool {size}"))))
            }
            _ => (READ, Some(held("kept".to_owned(), "--connection kept"))),
        };
        Ok(Self { page, held })
    }
}

impl PageSet for ConnectPages {
    type Data = Rows;
    type Acknowledged = ();

    const INFO: &'static ExperimentInfo = &INFO;
    const CLIENT_BYTES: u64 = 64_000;
    const STORED_BYTES: Option<u64> = Some(LENGTH as u64);

    fn settings(&self) -> Vec<NeededSetting> {
        self.held.iter().cloned().collect()
    }

    fn data(&self, session: &mut dyn Session) -> Result<Rows> {
        Rows::of(session, &INFO)
    }

    fn client(&self, _operation: &str, client: Client, data: Arc<Rows>) -> Result<Box<dyn PageClient>> {
        let content = content(data.seed);
        let compare = move |key, data: &[u8]| content.check(key, LOADED, data);
        Ok(Box::new(ReadRows::new(path(&INFO, self.page), data.records, client, compare)))
    }

    /// No operation writes.
    fn verify(&self, _: &mut dyn Session, _: &Rows, _: &[&()], _: &Added) -> Result<Verification> {
        Ok(Verification::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(connection: &str) -> Vec<NeededSetting> {
        let cell = Cell::new(INFO.axes.iter().map(|axis| {
            let text = match axis.name {
                "connection" => connection,
                "pool" => "7",
                _ => "100",
            };
            (axis.name.to_owned(), axis.parse(text).unwrap())
        }));
        ConnectPages::new(&cell).unwrap().settings()
    }

    #[test]
    fn page_requires_matching_connection_setting() {
        assert_eq!(needs("per-request"), []);
        assert_eq!(needs("kept")[0].value, "kept");
        let pool = needs("pool");
        assert_eq!(pool[0].value, "pool of 7");
        assert!(pool[0].remedy.contains("--connection pool --pool 7"), "{pool:?}");
    }
}
