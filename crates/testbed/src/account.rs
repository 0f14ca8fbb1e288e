//! Whom a server runs as when the tool itself runs as root.

use std::fs;

/// An unprivileged user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub uid: u32,
    pub gid: u32,
}

/// The user for a server that refuses root: nobody special when we are not root ourselves.
pub(crate) fn unprivileged() -> Option<Account> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // 65534 is what Linux shows for users that it cannot name; as good a nobody as any.
    Some(in_passwd(&passwd, "nobody").unwrap_or(Account { uid: 65534, gid: 65534 }))
}

/// `name:password:uid:gid:…`, see passwd(5). A uid of 0 is not unprivileged.
fn in_passwd(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let account = Account { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? };
        (account.uid != 0).then_some(account)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nnobody:x:65534:65533:nobody:/:/bin/false\n";
        assert_eq!(in_passwd(passwd, "nobody"), Some(Account { uid: 65534, gid: 65533 }));
        assert_eq!(in_passwd(passwd, "root"), None);
        assert_eq!(in_passwd(passwd, "bod"), None);
    }
}
