//! Texts that reach a report in English, in another language: notes of drivers, reasons, meanings of values. Run files have them in
//! English, so that the English text is the key, as in gettext: a catalogue serves runs of earlier versions too.

use crate::messages::{Language, filled};
use std::sync::LazyLock;

/// English texts with Japanese ones.
static JAPANESE: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let quoted = |line: &'static str, word: &str| line.strip_prefix(word)?.strip_suffix('"');
    let mut lines = include_str!("ja.po").lines();
    std::iter::from_fn(|| {
        let english = lines.find_map(|line| quoted(line, "msgid \""))?;
        Some((english, quoted(lines.next()?, "msgstr \"")?))
    })
    .collect()
});

/// The text in this language, in Japanese without a full stop; `None` if the catalogue lacks it.
pub(crate) fn find(text: &str, language: Language) -> Option<String> {
    match language {
        Language::English => Some(text.to_owned()),
        Language::Japanese => japanese(text, true),
    }
}

/// The text in Japanese, with its values in Japanese too if they are `translated`. Those within a value are kept, since a server may
/// have written it, of any length.
fn japanese(text: &str, translated: bool) -> Option<String> {
    let text = text.trim_end_matches('.');
    let value = |value: &str| {
        let found = if translated && value.contains(' ') { japanese(value, false) } else { None };
        found.unwrap_or_else(|| value.to_owned())
    };
    let whole = JAPANESE.iter().find_map(|(english, japanese)| {
        let values: Vec<String> = values(english, text)?.into_iter().map(value).collect();
        Some(filled(japanese, |name| values.get(name.parse::<usize>().ok()?).map(String::as_str)))
    });
    // A reason with what to do.
    let parts = || text.split_once("; ").filter(|_| translated);
    whole.or_else(|| {
        parts().and_then(|(why, hint)| Some(japanese(why, false)? + "。" + &japanese(hint, false)?))
    })
}

/// The text in this language; in English if the catalogue lacks it.
pub(crate) fn translated(text: &str, language: Language) -> String {
    find(text, language).unwrap_or_else(|| text.to_owned())
}

/// A value within a text, or one that differs between runs. One word is that of a server, or of a command line.
pub(crate) fn value(text: &str, language: Language) -> String {
    if text.contains(' ') { translated(text, language) } else { text.to_owned() }
}

/// A note as a sentence: in English as it is recorded.
pub(crate) fn note(text: &str, language: Language) -> String {
    match language {
        Language::English => text.to_owned(),
        Language::Japanese => find(text, language).map_or_else(|| text.to_owned(), |found| found + "。"),
    }
}

/// The values of a text with this pattern, in which each `{}` is a value.
fn values<'t>(pattern: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut parts = pattern.split("{}").peekable();
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let (value, after) = if is_last { (rest.strip_suffix(part)?, "") } else { rest.split_once(part)? };
        values.push(value);
        rest = after;
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// The sources of all crates, without their tests: literals without line breaks, and values as `{}`.
    fn sources(folder: &Path, all: &mut Vec<String>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|ending| ["rs", "json"].iter().any(|one| ending == *one)) {
                let text = fs::read_to_string(&path).unwrap();
                all.push(normalised(text.split("#[cfg(test)]").next().unwrap()));
            }
        }
    }

    fn normalised(text: &str) -> String {
        let mut parts = text.split("\\\n");
        let first = parts.next().unwrap_or_default().to_owned();
        let joined = parts.fold(first, |all, part| all + part.trim_start());
        let mut out = String::new();
        let mut rest = joined.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            out += before;
            let value = after.split_once('}').filter(|(value, _)| !value.contains(['"', '{', ' ', '\n']));
            out += if value.is_some() { "{}" } else { "{" };
            rest = value.map_or(after, |(_, after)| after);
        }
        out + rest
    }

    fn crates() -> Vec<String> {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut texts = Vec::new();
        let crates = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path().join("src"));
        crates.filter(|folder| folder.is_dir()).for_each(|folder| sources(&folder, &mut texts));
        sources(&all.join("report/published"), &mut texts);
        texts
    }

    #[test]
    fn each_text_of_the_catalogue_is_one_of_the_program() {
        let sources = crates();
        let lacking = |english: &&str| {
            // Values at its ends may be added elsewhere.
            let text = english.trim_end_matches(" {}").trim_start_matches("{}");
            !sources.iter().any(|source| source.contains(text))
        };
        let stale: Vec<&str> = JAPANESE.iter().map(|(english, _)| *english).filter(lacking).collect();
        assert!(JAPANESE.len() > 100 && stale.is_empty(), "{stale:#?}");
        for (english, japanese) in JAPANESE.iter() {
            for (at, _) in english.matches("{}").enumerate().filter(|_| !english.contains("those of Kurabe"))
            {
                assert!(japanese.contains(&format!("{{{at}}}")), "{english}: {japanese}");
            }
        }
    }

    /// The literals of sentences within a piece of code.
    fn literals(code: &str) -> impl Iterator<Item = &str> {
        code.split('"').skip(1).step_by(2).filter(|text| text.contains(' '))
    }

    /// The code from its start to where its brackets are closed.
    fn closed(code: &str, [open, close]: [char; 2]) -> &str {
        let (mut depth, mut quoted) = (1, false);
        let end = code.char_indices().find(|(_, c)| {
            quoted ^= *c == '"';
            depth += i32::from(!quoted && *c == open) - i32::from(!quoted && *c == close);
            depth == 0
        });
        end.map_or(code, |(at, _)| &code[..at])
    }

    #[test]
    fn each_note_of_a_driver_and_each_reason_why_it_lacks_something_is_in_the_catalogue() {
        let folders = [
            "drivers/src", "lmdb/src", "oracle/src", "app/src", "targets/src", "engine/src", "fleet/src",
            "core/src",
        ];
        let mut all = Vec::new();
        for folder in folders {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder), &mut all);
        }
        let (mut notes, mut reasons) = (Vec::new(), Vec::new());
        for text in &all {
            let calls = |call: &'static str| text.split(call).skip(1);
            // A literal, perhaps in `format!`.
            notes.extend(
                ["notes.push(", "note(", "add_unavailable("].into_iter().flat_map(calls).filter_map(|rest| {
                    let rest = rest.trim_start();
                    let rest = rest.strip_prefix("format!(").unwrap_or(rest).trim_start();
                    rest.strip_prefix('"')?.split('"').next()
                }),
            );
            let given = ["Support::no(", "Support::No("].into_iter().flat_map(calls);
            reasons.extend(given.flat_map(|rest| literals(closed(rest, ['(', ')']))));
            let functions = calls("fn unsupported(").filter_map(|rest| Some(rest.split_once('{')?.1));
            reasons.extend(functions.flat_map(|rest| literals(closed(rest, ['{', '}']))));
        }
        assert!(notes.len() > 25 && reasons.len() > 60, "{} {}", notes.len(), reasons.len());
        notes.extend(reasons);
        let lacking: Vec<&&str> =
            notes.iter().filter(|note| find(note, Language::Japanese).is_none()).collect();
        assert!(lacking.is_empty(), "{lacking:#?}");
    }

    #[test]
    fn each_published_conclusion_is_in_the_catalogue() {
        let mut all = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("published"), &mut all);
        let said = all.iter().flat_map(|text| text.split("\"said\": \"").skip(1));
        let said: Vec<&str> = said.filter_map(|rest| rest.split('"').next()).collect();
        let lacking: Vec<&&str> =
            said.iter().filter(|text| find(text, Language::Japanese).is_none()).collect();
        assert!(!said.is_empty() && lacking.is_empty(), "{lacking:#?}");
    }

    #[test]
    fn values_of_a_text_are_put_into_its_translation() {
        let japanese = |text| translated(text, Language::Japanese);
        assert_eq!(
            japanese("journal_mode=memory: a process that crashes during a write leaves a damaged file."),
            "journal_mode=memory では、書き込み中にプロセスが異常終了すると、ファイルが壊れます"
        );
        let pooler = "PgBouncer stands before the server, in session mode: its time and processor use are part of every result, \
                      and the server's processes are not observed through it";
        assert!(
            japanese(pooler).starts_with("サーバーの手前に PgBouncer(セッションモード)"),
            "{}",
            japanese(pooler)
        );
        let cpus = "the server would get 4 of 2 processors, which leaves none for the client";
        let with_hint = format!("{cpus}; use a larger machine, or --cpu-placement shared");
        let with_hint = japanese(&with_hint);
        assert_eq!(
            with_hint,
            format!("{}。もっと大きいマシンか --cpu-placement shared を使う", japanese(cpus))
        );
        assert!(with_hint.starts_with("サーバーが 2 個中 4 個"), "{with_hint}");
        assert_eq!(japanese("what no driver says"), "what no driver says");
        let hostile = "a beside it is ".repeat(200_000);
        assert!(japanese(&hostile).len() > 200_000, "a long text of a server ends nothing");
    }
}
