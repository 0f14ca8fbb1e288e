//! The cache folder, with servers and clients that are executed.

use std::env;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The cache folder, outside any clone: `$KURABE_CACHE`, or `kurabe` in the user's cache folder. `None` if another account can
/// put programs there, which would be executed.
pub fn folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("KURABE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("kurabe")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/kurabe")))
        .filter(|p| p.is_absolute() && is_kept_from_others(p))
}

/// Whether only this account and root can change what a folder has, and which folder its name leads to. One that is not there
/// yet will be this account's.
pub fn is_kept_from_others(folder: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    const OTHERS: u32 = 0o002;
    let own = rustix::process::geteuid().as_raw();
    let is_safe = |path: &Path| {
        path.ancestors().enumerate().all(|(above, part)| {
            part.symlink_metadata().map_or(true, |meta| {
                let is_writable = !meta.is_symlink() && meta.mode() & OTHERS != 0;
                // In a folder with the sticky bit others cannot replace what is not theirs.
                let is_shared = is_writable && (above == 0 || meta.mode() & STICKY == 0);
                [own, 0].contains(&meta.uid()) && !is_shared
            })
        })
    };
    is_safe(folder) && folder.canonicalize().map_or(true, |real| is_safe(&real))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn folder_that_others_can_fill_is_no_cache() {
        let base = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let (shared, inner) = (base.path().join("shared"), base.path().join("shared/kurabe"));
        fs::create_dir(&shared).unwrap();
        for (mode, itself, below) in
            [(0o755, true, true), (0o1777, false, true), (0o777, false, false), (0o775, true, true)]
        {
            chmod(&shared, mode);
            assert_eq!(is_kept_from_others(&shared), itself, "{mode:o}");
            assert_eq!(is_kept_from_others(&inner), below, "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            chmod(&shared, 0o1777);
            fs::create_dir(&inner).unwrap();
            std::os::unix::fs::chown(&inner, Some(54_321), None).unwrap();
            assert!(!is_kept_from_others(&inner));
            let link = base.path().join("link");
            std::os::unix::fs::symlink(&inner, &link).unwrap();
            assert!(!is_kept_from_others(&link));
        }
    }
}
