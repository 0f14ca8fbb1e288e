//! Warnings before a run about server settings that would make its results unrepresentative.
//!
//! They use the settings that drivers report, so they need no request.

use kurabe_core::facts::ServerFacts;
use kurabe_core::units;

/// The setting of the server's data cache size, by engine.
const POOLS: [(&str, &str); 6] = [
    ("MySQL", "innodb_buffer_pool_size"),
    ("MariaDB", "innodb_buffer_pool_size"),
    ("PostgreSQL", "shared_buffers"),
    ("Oracle", "db_cache_size"),
    ("Redis", "maxmemory"),
    ("Valkey", "maxmemory"),
];

/// Warnings for a server, one sentence each. `data_bytes` is the size of the largest cell's data.
pub fn cautions(facts: &ServerFacts, data_bytes: u64) -> Vec<String> {
    [debug_build(facts), small_pool(facts, data_bytes), closes_idle(facts)].into_iter().flatten().collect()
}

/// Warns of a server that closes connections which are idle for less than a minute. Kurabe's own ask for more.
fn closes_idle(facts: &ServerFacts) -> Option<String> {
    let seconds = |name| setting(facts, name).and_then(|value| value.parse::<u64>().ok());
    let short = |name: &'static str| Some((name, seconds(name).filter(|seconds| *seconds < 60)?));
    let milliseconds = setting(facts, "idle_session_timeout").filter(|value| *value != "0");
    let (name, value) = match (short("wait_timeout"), milliseconds) {
        (Some((name, seconds)), _) => (name, format!("{seconds} s")),
        (None, Some(value)) => ("idle_session_timeout", value.to_owned()),
        (None, None) => return None,
    };
    Some(format!(
        "the server closes idle connections ({name} = {value}): those of clients that wait longer between requests are lost, \
         as an application's would be"
    ))
}

fn setting<'a>(facts: &'a ServerFacts, name: &str) -> Option<&'a str> {
    facts.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

/// Warns of a debug build, which is several times slower than a release build, with other bottlenecks.
fn debug_build(facts: &ServerFacts) -> Option<String> {
    let asserts = setting(facts, "debug_assertions") == Some("on");
    let texts = [Some(facts.version.as_str()), setting(facts, "version_comment")];
    let named = texts.into_iter().flatten().any(|text| text.to_ascii_lowercase().contains("debug"));
    (asserts || named).then(|| {
        let how = if asserts { "debug_assertions = on" } else { facts.version.as_str() };
        format!("this server is a debug build ({how}), whose results do not apply to production; measure a release build")
    })
}

/// The name and size of the server's cache of data.
fn cache(facts: &ServerFacts) -> Option<(&'static str, u64)> {
    let name = POOLS.iter().find(|(engine, _)| facts.engine.starts_with(engine))?.1;
    size(setting(facts, name)?).filter(|bytes| *bytes > 0).map(|bytes| (name, bytes))
}

/// How data of this size, with a cache in front of them, compare with the server's own cache.
pub fn own_cache(facts: &ServerFacts, data_bytes: u64) -> Option<String> {
    let (name, bytes) = cache(facts)?;
    let all = if data_bytes > bytes {
        ""
    } else {
        ": all of them, so that a cache in front saves no reads from the disk (--records)"
    };
    Some(format!(
        "the data are {}, of which the server caches {} ({name}){all}",
        units::size(data_bytes),
        units::size(bytes)
    ))
}

/// Warns of data larger than the server's cache, which may still have its default size.
fn small_pool(facts: &ServerFacts, data_bytes: u64) -> Option<String> {
    let (name, pool) = cache(facts)?;
    (data_bytes > pool).then(|| {
        format!(
            "the data of a cell is {} and the server's cache {} ({name}): many reads come from the operating system \
             or the disk; raise {name}, or use fewer --records, unless you want to measure this",
            units::size(data_bytes),
            units::size(pool)
        )
    })
}

/// Parses a size as servers write it (`134217728`, `128MB`, `16384 kB`) into bytes.
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
    use kurabe_core::facts::Setting;

    fn facts(engine: &str, version: &str, settings: &[(&str, &str)]) -> ServerFacts {
        ServerFacts {
            engine: engine.to_owned(),
            version: version.to_owned(),
            settings: settings.iter().map(|(name, value)| Setting::new(*name, *value)).collect(),
            ..ServerFacts::default()
        }
    }

    #[test]
    fn only_debug_builds_are_warned_about() {
        assert_eq!(
            cautions(&facts("MySQL", "9.7.4", &[("version_comment", "Source distribution")]), 0),
            [""; 0]
        );
        for server in [
            facts("MySQL", "9.7.4-debug", &[]),
            facts("MariaDB", "10.11.2", &[("version_comment", "Debug build")]),
            facts("PostgreSQL", "18.1", &[("debug_assertions", "on")]),
        ] {
            let warnings = cautions(&server, 0);
            assert!(warnings.len() == 1 && warnings[0].contains("debug build"), "{warnings:?}");
        }
    }

    #[test]
    fn only_data_larger_than_the_cache_is_warned_about() {
        let server = |value| facts("PostgreSQL", "18.1", &[("shared_buffers", value)]);
        assert_eq!(cautions(&server("128MB"), 100 << 20), [""; 0]);
        let warnings = cautions(&server("128MB"), 200 << 20);
        assert!(warnings[0].contains("shared_buffers") && warnings[0].contains("--records"), "{warnings:?}");
        let mysql = facts("MySQL", "9.7.4", &[("innodb_buffer_pool_size", "134217728")]);
        assert_eq!(cautions(&mysql, 1 << 30).len(), 1);
        // No limit, and an invalid value.
        assert_eq!(cautions(&facts("Redis", "7.0", &[("maxmemory", "0")]), 1 << 40), [""; 0]);
        assert_eq!(cautions(&server("many"), 1 << 40), [""; 0]);
    }
}
