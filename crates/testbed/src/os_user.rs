//! The OS user of a server if the tool itself runs as root.
//!
//! Each server has a user of its own: a number that no account has, so that neither other servers nor other processes of
//! `nobody` can read its memory and files, or signal it.

use std::fs;

use crate::TestbedError;
use crate::password::random;

/// An unprivileged user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OsUser {
    pub uid: u32,
    pub gid: u32,
}

/// Numbers that nothing else uses, by systemd's table of users and groups ("UIDS-GIDS"): above those of containers.
const NUMBERS: std::ops::RangeInclusive<u32> = 1_879_048_192..=2_147_483_646;

/// The user for a server that refuses to run as root; `None` if this process does not run as root. In a container that has
/// no such numbers, the user is `nobody`.
pub(crate) fn unprivileged() -> Result<Option<OsUser>, TestbedError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let exist = |map: &str| fs::read_to_string(map).is_ok_and(|map| has(&map, &NUMBERS));
    if !exist("/proc/self/uid_map") || !exist("/proc/self/gid_map") {
        return Ok(Some(nobody()));
    }
    let random = u32::from_le_bytes(random::<4>()?);
    let number = NUMBERS.start() + random % (NUMBERS.end() - NUMBERS.start());
    Ok(Some(OsUser { uid: number, gid: number }))
}

/// The user `nobody`, which has a name: a program that looks for its user's name runs as this one.
pub(crate) fn nobody() -> OsUser {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // 65534 is the overflow user id of Linux.
    in_passwd(&passwd, "nobody").unwrap_or(OsUser { uid: 65534, gid: 65534 })
}

/// Whether a map of users, lines of `first outside count`, has all of these numbers.
fn has(map: &str, numbers: &std::ops::RangeInclusive<u32>) -> bool {
    map.lines().any(|line| {
        let words: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [first, _, count] = words[..] else { return false };
        first <= u64::from(*numbers.start()) && u64::from(*numbers.end()) < first + count
    })
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

    #[test]
    fn container_with_few_users_has_no_numbers_of_its_own() {
        assert!(has("         0          0 4294967295\n", &NUMBERS));
        assert!(!has("         0     100000      65536\n", &NUMBERS));
        assert!(!has("", &NUMBERS));
    }
}
