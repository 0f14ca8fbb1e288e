//! Root folders in the cache: servers that the distribution does not carry, from packages of another suite of Debian.
//! `cargo xtask setup` creates them, and reads this file too.
//!
//! A server in a root folder is run with its own dynamic loader and libraries, without chroot and independent of the
//! system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::programs;

/// The dynamic loaders of two architectures, and Debian's folders of their libraries.
pub(crate) const ARCHITECTURES: [(&str, &str); 2] = [
    ("lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"),
    ("lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"),
];

/// Where a server is in the cache.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The name of the root folder.
    pub folder: &'static str,
    /// The server's program, relative to the root folder.
    pub program: &'static str,
}

/// MySQL, which no stable suite has.
pub(crate) const MYSQL: Place = Place { folder: "mysql-sid", program: "usr/sbin/mysqld" };

/// Valkey, which Debian has from version 13 on.
pub(crate) const VALKEY: Place = Place { folder: "valkey-trixie", program: "usr/bin/valkey-server" };

/// A `PgBouncer` that keeps prepared statements in transaction mode (1.21 or newer), from Debian 13.
pub(crate) const PGBOUNCER: Place = Place { folder: "pgbouncer-trixie", program: "usr/sbin/pgbouncer" };

impl Place {
    /// The root folder, if the cache has a complete one.
    pub fn root(&self) -> Option<Root> {
        self.root_in(&programs::cache()?)
    }

    fn root_in(&self, cache: &Path) -> Option<Root> {
        let dir = cache.join("servers").join(self.folder);
        let program = dir.join(self.program);
        ARCHITECTURES
            .into_iter()
            .map(|(loader, libraries)| Root {
                loader: dir.join(loader),
                libraries: dir.join(libraries),
                program: program.clone(),
                dir: dir.clone(),
            })
            .find(|root| programs::is_program(&root.loader) && programs::is_program(&root.program))
    }

    /// The root folder of a program; `None` for a program of the system.
    pub fn root_of(&self, program: &Path) -> Option<Root> {
        self.root().filter(|root| root.program == program)
    }
}

/// A root folder with a server.
pub(crate) struct Root {
    /// The folder.
    pub dir: PathBuf,
    /// Its dynamic loader.
    pub loader: PathBuf,
    /// The folder of its libraries.
    libraries: PathBuf,
    /// The server's program.
    pub program: PathBuf,
}

impl Root {
    /// `loader --library-path LIBRARIES PROGRAM` without the loader, before the program's own arguments.
    pub fn prefix(&self) -> [OsString; 3] {
        ["--library-path".into(), self.libraries.clone().into(), self.program.clone().into()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn root_folder_without_its_loader_is_not_used() {
        let cache = std::env::temp_dir().join(format!("kurabe-root-{}", std::process::id()));
        let write = |path: &str| {
            let path = cache.join("servers").join(VALKEY.folder).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(VALKEY.program);
        assert!(VALKEY.root_in(&cache).is_none());
        let (loader, libraries) = ARCHITECTURES[1];
        write(loader);
        let root = VALKEY.root_in(&cache).unwrap();
        assert!(root.loader.ends_with(loader) && root.program.ends_with(VALKEY.program));
        assert_eq!(root.prefix()[1], root.dir.join(libraries));
        assert!(MYSQL.root_in(&cache).is_none());
        fs::remove_dir_all(&cache).unwrap();
    }
}
