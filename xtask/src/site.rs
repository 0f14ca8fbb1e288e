//! `cargo xtask site`: the documentation as a site in `target/site`, with a gallery of real pages. mdbook makes it.
//!
//! - `--gallery target/pages`: the folder that `cargo xtask pages` made; without it the site has no gallery

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::options::Variables;
use crate::shell::{self, Outcome};
use crate::test::repository;
use crate::tool;

const VERSION: &str = "0.4.52";
/// Files beside `docs` to which its pages and the README lead.
const BESIDE: [&str; 3] = ["CONTRIBUTING.md", "CHANGELOG.md", "README.ja.md"];

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("gallery", "")])?;
    let (from, out) = (repository().join("target/site-source"), repository().join("target/site"));
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    if from.exists() {
        fs::remove_dir_all(&from).map_err(failed)?;
    }
    copy(&repository().join("docs"), &from)?;
    let mut first = vec![("Kurabe", "index.md")];
    write(&from.join("index.md"), &below(&read("README.md")?))?;
    for file in BESIDE {
        write(&from.join(file), &below(&read(file)?))?;
    }
    first.push(("日本語", "README.ja.md"));
    if !given.get("gallery").is_empty() {
        copy(Path::new(given.get("gallery")), &from.join("gallery"))?;
        first.push(("Gallery", "gallery/README.md"));
    }
    let summary = from.join("SUMMARY.md");
    let chapters = fs::read_to_string(&summary).map_err(failed)?;
    let chapters =
        chapters.strip_prefix("# Summary\n\n").ok_or("docs/SUMMARY.md does not begin with '# Summary'")?;
    let list = |pages: &[(&str, &str)]| {
        let lines: Vec<String> = pages.iter().map(|(name, file)| format!("- [{name}]({file})\n")).collect();
        lines.concat()
    };
    let others = [("Contributing", "CONTRIBUTING.md"), ("Changes", "CHANGELOG.md")];
    write(&summary, &format!("# Summary\n\n{}{chapters}{}", list(&first), list(&others)))?;
    let mut book =
        Command::new(tool::compiled("mdbook", VERSION, &["--no-default-features", "--features", "search"])?);
    book.arg("build")
        .arg(repository())
        .arg("--dest-dir")
        .arg(&out)
        .env("MDBOOK_BOOK__SRC", "target/site-source");
    shell::run(&mut book, "mdbook")?;
    println!("site: {}", out.join("index.html").display());
    Ok(())
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(repository().join(file)).map_err(|error| format!("{file}: {error}"))
}

fn write(file: &Path, text: &str) -> Outcome {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// A page of the root, as one of the folder `docs`.
fn below(text: &str) -> String {
    text.replace("](docs/", "](").replace("](README.md", "](index.md")
}

fn copy(from: &Path, to: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(failed)?;
        }
    }
    Ok(())
}
