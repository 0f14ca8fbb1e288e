//! Figures that others published, embedded with their provenance and their known faults.
//!
//! They are data (`published/` in this crate): a table of engine, layout, operation, size, requests and seconds as
//! its author printed it, and a description beside it. An experiment names its file.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Name, table, description.
const FILES: &[(&str, &str, &str)] = &[(
    "session_store.csv",
    include_str!("../published/session_store.csv"),
    include_str!("../published/session_store.json"),
)];

/// Published figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Published {
    pub about: About,
    pub lines: Vec<Line>,
}

/// What is known of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub title: String,
    pub provenance: String,
    pub hardware: String,
    /// Their operations, and ours for each.
    operations: BTreeMap<String, String>,
    pub faults: Vec<String>,
}

/// One engine and layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub name: String,
    /// Our operation.
    pub operation: String,
    /// Bytes, and operations per second.
    pub points: Vec<(f64, f64)>,
}

/// The figures of a file; none where it is not embedded.
pub(crate) fn load(file: &str) -> Option<Published> {
    let (_, table, about) = FILES.iter().find(|(name, ..)| *name == file)?;
    let about: About = serde_json::from_str(about).ok()?;
    let mut lines: Vec<Line> = Vec::new();
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [engine, layout, operation, bytes, requests, seconds] = fields.as_slice() else { continue };
        let Some(operation) = about.operations.get(*operation) else { continue };
        let (Ok(bytes), Ok(requests), Ok(seconds)) =
            (bytes.parse::<f64>(), requests.parse::<f64>(), seconds.trim().parse::<f64>())
        else {
            continue;
        };
        let name = format!("{engine} {layout}");
        let point = (bytes, requests / seconds);
        match lines.iter_mut().find(|line| line.name == name && line.operation == *operation) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name, operation: operation.clone(), points: vec![point] }),
        }
    }
    Some(Published { about, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_file_is_read_whole() {
        for (name, table, _) in FILES {
            let published = load(name).unwrap();
            let points: usize = published.lines.iter().map(|line| line.points.len()).sum();
            assert_eq!(points, table.lines().count() - 1, "{name}");
            assert!(!published.about.faults.is_empty());
            assert!(
                published.lines.iter().flat_map(|line| &line.points).all(|(x, y)| *x > 0.0 && y.is_finite())
            );
        }
        assert!(load("nothing.csv").is_none());
    }
}
