//! What of a server would make its figures those of something else: said before a run, with what to do.
//!
//! It is read from the settings that drivers report, so that it costs no request.

use kurabe_core::facts::ServerFacts;
use kurabe_core::units;

/// Settings that say how much of the data a server keeps in its own memory, by engine.
const POOLS: [(&str, &str); 6] = [
    ("MySQL", "innodb_buffer_pool_size"),
    ("MariaDB", "innodb_buffer_pool_size"),
    ("PostgreSQL", "shared_buffers"),
    ("Oracle", "db_cache_size"),
    ("Redis", "maxmemory"),
    ("Valkey", "maxmemory"),
];

/// What a reader of the figures must know, a sentence each; none where nothing is amiss. `data_bytes` is what the largest cell
/// keeps in its store.
pub fn cautions(facts: &ServerFacts, data_bytes: u64) -> Vec<String> {
    debug_build(facts).into_iter().chain(small_pool(facts, data_bytes)).collect()
}

fn setting<'a>(facts: &'a ServerFacts, name: &str) -> Option<&'a str> {
    facts.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

/// A server that checks itself at every step: several times slower, and in other places than the one in production.
fn debug_build(facts: &ServerFacts) -> Option<String> {
    let asserts = setting(facts, "debug_assertions") == Some("on");
    let texts = [Some(facts.version.as_str()), setting(facts, "version_comment")];
    let said = texts.into_iter().flatten().any(|text| text.to_ascii_lowercase().contains("debug"));
    (asserts || said).then(|| {
        let how = if asserts { "debug_assertions = on" } else { facts.version.as_str() };
        format!("this server is a debug build ({how}): its figures say nothing of the one in production; measure a release build")
    })
}

/// Data that a server's own memory does not hold, where the setting may never have been looked at.
fn small_pool(facts: &ServerFacts, data_bytes: u64) -> Option<String> {
    let name = POOLS.iter().find(|(engine, _)| facts.engine.starts_with(engine))?.1;
    let pool = size(setting(facts, name)?)?;
    (pool > 0 && data_bytes > pool).then(|| {
        format!(
            "the data of a cell are {} and the server's memory for them {} ({name}): many reads come from the operating \
             system or the disk; raise it, or ask for fewer --records, unless that is what is to be measured",
            units::size(data_bytes),
            units::size(pool)
        )
    })
}

/// `134217728`, `128MB`, `16384 kB`: as servers write sizes, in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::facts::{Limits, Setting};

    fn facts(engine: &str, version: &str, settings: &[(&str, &str)]) -> ServerFacts {
        ServerFacts {
            engine: engine.to_owned(),
            version: version.to_owned(),
            client: String::new(),
            transport: String::new(),
            durability: None,
            durability_settings: Vec::new(),
            settings: settings.iter().map(|(name, value)| Setting::new(*name, *value)).collect(),
            limits: Limits::default(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_debug_build_is_told_from_a_release() {
        assert_eq!(
            cautions(&facts("MySQL", "9.7.4", &[("version_comment", "Source distribution")]), 0),
            [""; 0]
        );
        for server in [
            facts("MySQL", "9.7.4-debug", &[]),
            facts("MariaDB", "10.11.2", &[("version_comment", "Debug build")]),
            facts("PostgreSQL", "18.1", &[("debug_assertions", "on")]),
        ] {
            let told = cautions(&server, 0);
            assert!(told.len() == 1 && told[0].contains("debug build"), "{told:?}");
        }
    }

    #[test]
    fn data_beyond_the_buffer_pool_are_told_and_data_within_are_not() {
        let server = |value| facts("PostgreSQL", "18.1", &[("shared_buffers", value)]);
        assert_eq!(cautions(&server("128MB"), 100 << 20), [""; 0]);
        let told = cautions(&server("128MB"), 200 << 20);
        assert!(told[0].contains("shared_buffers") && told[0].contains("--records"), "{told:?}");
        let mysql = facts("MySQL", "9.7.4", &[("innodb_buffer_pool_size", "134217728")]);
        assert_eq!(cautions(&mysql, 1 << 30).len(), 1);
        // No limit, and a value that is none.
        assert_eq!(cautions(&facts("Redis", "7.0", &[("maxmemory", "0")]), 1 << 40), [""; 0]);
        assert_eq!(cautions(&server("many"), 1 << 40), [""; 0]);
    }
}
