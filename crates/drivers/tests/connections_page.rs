//! `docs/connections.md`, from what the drivers declare. `KURABE_GOLDEN=write` rewrites it.

use kurabe_drivers::info::{DriverInfo, ForeignOption, Meaning, OptionInfo};
use kurabe_drivers::registry::DRIVERS;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# Connections

What each engine's URL, the environment and files say of a connection, beside libpq, the `mysql` client and others. This page is made from what \
the drivers declare: `KURABE_GOLDEN=write cargo test -p kurabe-drivers --features full --test drivers connections_page`.

An unknown option is refused, and the nearest known one is named. Passwords are not shown and not recorded.
";

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn table(out: &mut String, title: &str, head: [&str; 2], rows: &[(String, String)]) {
    if !rows.is_empty() {
        let _ = write!(out, "\n**{title}**\n\n| {} | {} |\n|---|---|\n", head[0], head[1]);
        for (name, about) in rows {
            let _ = writeln!(out, "| {} | {} |", cell(name), cell(about));
        }
    }
}

fn foreign(option: &ForeignOption) -> (String, String) {
    let value = option.value.map_or_else(String::new, |value| format!("={value}"));
    let meaning = match option.meaning {
        Meaning::Is(name, Some(value)) => format!("`{name}={value}`"),
        Meaning::Is(name, None) => format!("`{name}`"),
        Meaning::Nothing(why) => format!("no effect: {why}"),
        Meaning::Refused(hint) => format!("refused: {hint}"),
    };
    (format!("`{}{value}`", option.name), format!("{meaning} ({})", option.from))
}

fn section(out: &mut String, driver: &DriverInfo) {
    let _ = write!(out, "\n## {}\n\n`{}`\n", driver.engine, driver.url);
    let option = |option: &OptionInfo| (format!("`{}`", option.name), option.help.to_owned());
    let pair = |(name, about): &(&str, &str)| ((*name).to_owned(), (*about).to_owned());
    let method = |(name, why): &(&str, &str)| {
        ((*name).to_owned(), (if why.is_empty() { "yes" } else { why }).to_owned())
    };
    let ways = &driver.connections;
    table(out, "Options", ["option", "effect"], &driver.options.iter().map(option).collect::<Vec<_>>());
    let foreigners: Vec<_> = ways.foreign.iter().map(foreign).collect();
    table(out, "Options of other clients and of providers", ["option", "meaning"], &foreigners);
    table(out, "Environment", ["variable", "for"], &ways.variables.iter().map(pair).collect::<Vec<_>>());
    table(out, "Files", ["file", "for"], &ways.files.iter().map(pair).collect::<Vec<_>>());
    let methods: Vec<_> = ways.authentication.iter().map(method).collect();
    table(out, "Authentication", ["method", "supported"], &methods);
    if !ways.tls.is_empty() {
        out.push_str("\n**TLS**\n\n| here | the engine's client | decision |\n|---|---|---|\n");
        for [ours, theirs, decision] in ways.tls {
            let _ = writeln!(out, "| {} | {} | {} |", cell(ours), cell(theirs), cell(decision));
        }
    }
    table(
        out,
        "Poolers, proxies, clusters",
        ["what", "result"],
        &ways.proxies.iter().map(method).collect::<Vec<_>>(),
    );
}

#[test]
fn page_is_what_the_drivers_declare() {
    // The page has all engines.
    if !kurabe_drivers::registry::LEFT_OUT.is_empty() {
        return;
    }
    let mut made = HEAD.to_owned();
    for driver in DRIVERS {
        section(&mut made, driver);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/connections.md");
    if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&file, &made).unwrap();
    }
    let page = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        made == page,
        "docs/connections.md is not what the drivers declare: write it anew with KURABE_GOLDEN=write"
    );
}
