//! A test that every dependency has a licence that `deny.toml` allows, also where `cargo deny` is not installed.

use crate::shell::{cargo, run};

/// Whether a licence expression can be met with allowed licences alone. `/` is an old way to write `OR`.
fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let text = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = text.split_whitespace().peekable();
    let result = either(&mut words, allowed);
    result.is_some_and(|result| result && words.next().is_none())
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// Alternatives; `None` if they are malformed.
fn either(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut result = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        result |= all(words, allowed)?;
    }
    Some(result)
}

/// Licences that apply together.
fn all(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut result = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allowed)?;
    }
    Some(result)
}

/// A licence, with its exception if it has one, or an expression in parentheses.
fn one(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let name = words.next()?;
    if name == "(" {
        let inner = either(words, allowed)?;
        return (words.next()? == ")").then_some(inner);
    }
    if words.next_if_eq(&"WITH").is_some() {
        let with = format!("{name} WITH {}", words.next()?);
        return Some(allowed(&with));
    }
    Some(allowed(name))
}

/// The strings of `allow = […]`, and the names with their expressions of `[[licenses.clarify]]`.
fn rules(deny: &str) -> (Vec<&str>, Vec<(&str, &str)>) {
    let list = deny.split("allow = [").nth(1).unwrap().split("\n]").next().unwrap();
    let allowed = list.lines().filter_map(quoted).collect();
    let clarified = deny.split("[[licenses.clarify]]").skip(1).map(|part| {
        let value = |name: &str| part.lines().find(|line| line.starts_with(name)).and_then(quoted).unwrap();
        (value("name"), value("expression"))
    });
    (allowed, clarified.collect())
}

/// The first text in quotes of a line.
fn quoted(line: &str) -> Option<&str> {
    line.split('"').nth(1)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let deny = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml")).unwrap();
    let (allowed, clarified) = rules(&deny);
    assert!(allowed.contains(&"MIT") && allowed.contains(&"Apache-2.0 WITH LLVM-exception"), "{allowed:?}");
    let mut command = cargo();
    command.args(["tree", "--locked", "--workspace", "--edges", "normal,build", "--prefix", "none"]);
    let tree = run(command.args(["--format", "{p}|{l}"]), "cargo tree").unwrap();
    let mut checked = 0;
    let mut refused = Vec::new();
    for (package, licence) in tree.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|')) {
        let name = package.split_whitespace().next().unwrap();
        let clarified = clarified.iter().find(|(clarified, _)| *clarified == name);
        let licence = clarified.map_or(licence, |(_, expression)| expression);
        if !is_allowed(licence, &|name| allowed.contains(&name)) {
            refused.push(format!("{package}: '{licence}'"));
        }
        checked += 1;
    }
    refused.sort();
    refused.dedup();
    assert!(refused.is_empty(), "deny.toml does not allow the licences of {refused:#?}");
    assert!(checked > 100, "only {checked} dependencies were found");
}

#[test]
fn expressions_are_evaluated_by_their_operators() {
    let allowed = |name: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&name);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-2.0", false),
        ("MIT/Apache-2.0", true),
        ("GPL-2.0 OR MIT", true),
        ("GPL-2.0 AND MIT", false),
        ("GPL-2.0 AND MIT OR ISC", true),
        ("GPL-2.0 AND (MIT OR ISC)", false),
        ("ISC AND (GPL-2.0 OR MIT)", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("", false),
        ("(MIT", false),
        ("MIT ISC", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
