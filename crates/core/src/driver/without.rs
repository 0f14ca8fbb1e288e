//! What a driver or a session does not have, said by name.

/// The methods of what a [`Driver`](crate::driver::Driver), a [`Session`](crate::driver::Session) or a
/// [`Bulk`](crate::driver::Bulk) does not have, within its `impl`: `without!(bulk, planner, cache);`. The traits have no
/// defaults, so that a wrapper cannot forget one.
#[macro_export]
macro_rules! without {
    (transfers) => {
        fn supports_transfer(&self, transfer: $crate::transfer::Transfer) -> $crate::driver::Support {
            $crate::driver::no_transfer(transfer)
        }
    };
    (compression) => {
        fn supports_compression(&self, by: $crate::compression::Compression) -> $crate::driver::Support {
            $crate::driver::no_compression(self, by)
        }
    };
    // No setting of a session changes how durable its writes are.
    (other_durability) => {
        fn require_durability(
            &mut self,
            class: $crate::durability::DurabilityClass,
        ) -> $crate::error::Result<()> {
            $crate::driver::only_class(self, class)
        }
    };
    (statistics) => {
        fn stats_probe(
            &self,
            _: &$crate::driver::ConnectOptions,
        ) -> $crate::error::Result<Box<dyn $crate::stats_probe::StatsProbe>> {
            Err($crate::Error::unsupported("its driver does not read server statistics"))
        }
    };
    (limited_memory) => {
        fn limited_servers(
            &self,
            _: &$crate::driver::ConnectOptions,
        ) -> $crate::error::Result<Vec<$crate::memory::LimitedServer>> {
            Ok(Vec::new())
        }
    };
    (links) => {
        fn links(&self) -> $crate::error::Result<&dyn $crate::driver::Links> {
            let why = "Kurabe knows no way by which this database reads another one's tables";
            Err($crate::Error::unsupported(why))
        }

        fn add_remote(&mut self, _: $crate::remote::RemoteAddress) {}
    };
    (dump_tool) => {
        fn dump_tool(&self) -> $crate::error::Result<Box<dyn $crate::dump::DumpTool>> {
            let why = "its driver knows no programs that dump and restore tables";
            Err($crate::Error::unsupported(why))
        }
    };
    (bulk) => {
        fn bulk(&mut self) -> $crate::error::Result<&mut dyn $crate::driver::Bulk> {
            Err($crate::Error::unsupported("this client has no requests that move many rows"))
        }
    };
    (planner) => {
        fn planner(&mut self) -> $crate::error::Result<&mut dyn $crate::driver::Planner> {
            Err($crate::Error::unsupported("this client does not read the optimizer's estimates"))
        }
    };
    (cache) => {
        fn cache(&mut self) -> $crate::error::Result<&mut dyn $crate::driver::Cache> {
            Err($crate::Error::unsupported("this target has no cache counters"))
        }
    };
    (transactions) => {
        fn in_transaction(&self) -> Option<bool> {
            None
        }
    };
    (raw_messages) => {
        fn raw_messages(&mut self) -> $crate::error::Result<&mut dyn $crate::driver::RawMessages> {
            Err($crate::Error::unsupported("this client does not replay captures"))
        }
    };
    // The client receives an answer whole, and passes it on as one page.
    (pages) => {
        fn execute_in_pages(
            &mut self,
            prepared: &$crate::driver::Prepared,
            parameters: &[$crate::value::Value<'_>],
            pages: &mut $crate::transfer::Pages<'_>,
        ) -> $crate::error::Result<()> {
            let mut whole = $crate::value::Reply::new();
            $crate::driver::Session::execute(self, prepared, parameters, &mut whole)?;
            pages.end(&mut whole)
        }
    };
    (text) => {
        fn load_text(&mut self, _: &str, _: &[u8]) -> $crate::error::Result<u64> {
            Err($crate::Error::unsupported("this client sends no rows as text"))
        }
    };
    (writes) => {
        fn write_rows(
            &mut self,
            _: &std::sync::Arc<$crate::collection::Collection>,
            _: &mut dyn $crate::transfer::RowSource,
        ) -> $crate::error::Result<$crate::transfer::Moved> {
            Err($crate::Error::unsupported("this client has no bulk write other than inserts of many rows"))
        }
    };
    ($first:ident, $($more:ident),+) => {
        $crate::without!($first);
        $crate::without!($($more),+);
    };
}
