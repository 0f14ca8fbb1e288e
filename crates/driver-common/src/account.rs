//! The name of the current OS user, which the engines' client programs use as the default user.

use std::fs;

/// The current user's name in `/etc/passwd`, as libpq uses it; otherwise the variable `USER` or `LOGNAME`.
pub fn name(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    // A user's full name may be in any encoding.
    let users = fs::read("/etc/passwd").unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    find(&users, rustix::process::geteuid().as_raw()).or_else(|| named("USER")).or_else(|| named("LOGNAME"))
}

/// The first name with a user id: `name:password:uid:…`, see passwd(5).
fn find(users: &str, number: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number) && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_name_of_a_uid_is_used() {
        let users =
            "# note\nbroken\n:x:7::\nroot:x:0:0:root:/:/bin/sh\ntoor:x:0:0::/:/bin/sh\nalice:x:1000:1000\n";
        assert_eq!(find(users, 0).as_deref(), Some("root"));
        assert_eq!(find(users, 1000).as_deref(), Some("alice"));
        assert_eq!(find(users, 7), None);
        assert_eq!(find(users, 12), None);
    }

    #[test]
    fn current_user_has_a_name() {
        assert!(name(&|name| (name == "USER").then(|| "me".to_owned())).is_some());
    }
}
