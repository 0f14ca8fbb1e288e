//! What programs that tests start do to their servers, and where there is room for these.

use std::path::Path;
use std::sync::OnceLock;

/// If this is set, a program that tests start makes its throwaway servers small too, and repeats no trials that other tests
/// disturbed. Only builds with debug assertions read it: servers that are measured have the engine's default files.
pub const SMALL: &str = "KURABE_SMALL_SERVERS";

/// The free bytes of the file system in memory from which servers of tests are there. Some six run at once, of 20 to
/// 100 MB each, and the largest tests fill one with half a gigabyte.
const ROOM: u64 = 4 << 30;

/// The folder of the file system in memory, if it has room for the servers of tests and no other folder for temporary files
/// is chosen.
pub fn memory() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<&Path>> = OnceLock::new();
    let find = || {
        let folder = Path::new("/dev/shm");
        let room = rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail * found.f_frsize >= ROOM);
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let chosen = set("KURABE_TMP") || set("TMPDIR");
        (room && !chosen && tempfile::tempdir_in(folder).is_ok()).then_some(folder)
    };
    *FOLDER.get_or_init(find)
}

/// Whether [`SMALL`] is set: tests have started this program.
#[must_use]
pub fn small_servers() -> bool {
    cfg!(debug_assertions) && std::env::var_os(SMALL).is_some()
}
