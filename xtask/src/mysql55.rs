//! MySQL 5.5.9 from Maven, for x86-64: its program, messages and an empty data folder are in an archive of Connector/MXJ.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::apt;
use crate::shell::{Outcome, Root, on_path, run};
use crate::testbed::programs;

/// The testbed has the same name.
const FOLDER: &str = "mysql-5.5.9";
const ARTIFACT: &str = "mysql:mysql-connector-mxj-db-files:5.0.12";
const ARCHIVE: &str = "mysql-connector-mxj-db-files-5.0.12.jar";

/// Puts it into the cache, unless it is there.
pub fn make(root: Root, cannot: Option<&str>) -> Outcome {
    let home = programs::cache().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    let folder = home.join("servers").join(FOLDER);
    if programs::is_program(&folder.join("mysqld")) {
        return Ok(());
    }
    if !cfg!(target_arch = "x86_64") {
        return Err("its program is for x86-64".to_owned());
    }
    if !on_path("unzip") {
        match cannot {
            Some(why) => return Err(format!("no unzip, and {why}")),
            None => apt::install(root, &["unzip"])?,
        }
    }
    let unfinished = home.join("servers").join(format!(".unfinished-mysql55-{}", std::process::id()));
    let done = fetch(&unfinished).and_then(|()| {
        // Another process may have been faster; its copy is equal.
        fs::rename(&unfinished, &folder).or_else(|error| {
            let there = programs::is_program(&folder.join("mysqld"));
            if there { Ok(()) } else { Err(format!("{}: {error}", folder.display())) }
        })
    });
    let _ = fs::remove_dir_all(&unfinished);
    done
}

fn fetch(folder: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    println!("setup: fetching MySQL 5.5.9, 140 MB; once");
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:copy", "-DoutputDirectory=."]).arg(format!("-Dartifact={ARTIFACT}"));
    run(maven.current_dir(folder), "mvn")?;
    unzip(folder, ARCHIVE, &["5-5-9/Linux-x86_64/mysqld", "5-5-9/share_dir.jar", "5-5-9/data_dir.jar"], ".")?;
    unzip(folder, "share_dir.jar", &["share/*"], ".")?;
    unzip(folder, "data_dir.jar", &["mysql/*", "performance_schema/*"], "data")?;
    for archive in [ARCHIVE, "share_dir.jar", "data_dir.jar"] {
        fs::remove_file(folder.join(archive)).map_err(failed)?;
    }
    let mut allow = Command::new("chmod");
    run(allow.args(["755", "mysqld"]).current_dir(folder), "chmod").map(drop)
}

/// Unpacks these members, those of the outer archive without their folders.
fn unzip(folder: &Path, archive: &str, members: &[&str], into: &str) -> Outcome {
    let mut unzip = Command::new("unzip");
    unzip.args(["-q", "-o"]);
    if archive == ARCHIVE {
        unzip.arg("-j");
    }
    run(unzip.arg(archive).args(members).args(["-d", into]).current_dir(folder), "unzip").map(drop)
}
