//! Tests of the documentation: every page is in the summary, and every relative link leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files of a directory and those below it whose names end with `.md`.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// The targets of the links and images of a page, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, block) in text.split("```").enumerate() {
        if number % 2 == 1 {
            continue;
        }
        for (number, part) in block.split('`').enumerate() {
            // A part between two backticks is code. A link's text may contain code, so that its target may begin a part.
            if number % 2 == 0 {
                let ends =
                    part.match_indices("](").filter_map(|(at, mark)| part[at + mark.len()..].split_once(')'));
                found.extend(ends.map(|(target, _)| target.to_owned()));
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

#[test]
fn every_page_is_in_the_summary_and_every_entry_is_a_page() {
    let docs = repository().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    let there: BTreeSet<PathBuf> =
        pages(&docs).into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert!(there.len() > 10, "{there:?}");
    assert_eq!(listed, there);
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let repository = repository();
    let docs = repository.join("docs");
    let mut all = pages(&docs);
    let top = fs::read_dir(&repository).unwrap().map(|entry| entry.unwrap().path());
    all.extend(top.filter(|path| path.extension().is_some_and(|end| end == "md")));
    let mut checked = 0;
    for page in all {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { plain(&page.parent().unwrap().join(file)) };
            assert!(target.exists(), "{}: {link} leads to no file", page.display());
            // The site has no other files than those of docs.
            let is_in_site = !page.starts_with(&docs) || target.starts_with(&docs);
            assert!(is_in_site, "{}: {link} leads out of docs", page.display());
            if !anchor.is_empty() && target.extension().is_some_and(|end| end == "md") {
                let there = anchors(&fs::read_to_string(&target).unwrap());
                assert!(there.contains(anchor), "{}: {link} leads to no heading", page.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} links were found");
}

#[test]
fn links_in_code_are_not_links() {
    let text = "[a](b.md) `[c](d.md)` ![e](f.png)\n```\n[g](h.md)\n```\n[`i`](j.md#k)";
    assert_eq!(links(text), ["b.md", "f.png", "j.md#k"]);
    assert!(anchors("# A b\n## What's `c`, d-e?").contains("whats-c-d-e"));
}
