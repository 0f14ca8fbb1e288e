//! The name of whoever runs this, which the engines' own programs take where no user is named.

use std::fs;

/// The account's name in the system's list of users, as libpq takes it; where that list is kept elsewhere, what the
/// environment says.
pub fn name(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    find(&users, rustix::process::geteuid().as_raw()).or_else(|| named("USER")).or_else(|| named("LOGNAME"))
}

/// The first name of a number: `name:password:number:…`, see passwd(5).
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
    fn a_number_has_its_first_name() {
        let users =
            "# note\nbroken\n:x:7::\nroot:x:0:0:root:/:/bin/sh\ntoor:x:0:0::/:/bin/sh\nalice:x:1000:1000\n";
        assert_eq!(find(users, 0).as_deref(), Some("root"));
        assert_eq!(find(users, 1000).as_deref(), Some("alice"));
        assert_eq!(find(users, 7), None);
        assert_eq!(find(users, 12), None);
    }

    #[test]
    fn whoever_runs_this_has_a_name() {
        assert!(name(&|name| (name == "USER").then(|| "me".to_owned())).is_some());
    }
}
