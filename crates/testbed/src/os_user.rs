//! The OS user of a server if the tool itself runs as root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

/// An unprivileged user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OsUser {
    pub uid: u32,
    pub gid: u32,
}

/// Makes the server's user the owner of a file or folder; does nothing without one.
pub(crate) fn give(path: &Path, owner: Option<&OsUser>) -> std::io::Result<()> {
    owner.map_or(Ok(()), |os_user| chown(path, Some(os_user.uid), Some(os_user.gid)))
}

/// The user for a server that refuses to run as root; `None` if this process does not run as root.
pub(crate) fn unprivileged() -> Option<OsUser> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // 65534 is the overflow user id of Linux.
    Some(in_passwd(&passwd, "nobody").unwrap_or(OsUser { uid: 65534, gid: 65534 }))
}

/// Finds `name:password:uid:gid:…`, see passwd(5). A uid of 0 is not unprivileged.
fn in_passwd(passwd: &str, name: &str) -> Option<OsUser> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let os_user = OsUser { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? };
        (os_user.uid != 0).then_some(os_user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_user_is_read_from_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nnobody:x:65534:65533:nobody:/:/bin/false\n";
        assert_eq!(in_passwd(passwd, "nobody"), Some(OsUser { uid: 65534, gid: 65533 }));
        assert_eq!(in_passwd(passwd, "root"), None);
        assert_eq!(in_passwd(passwd, "bod"), None);
    }
}
