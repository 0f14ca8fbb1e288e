//! Several tiers that are one server to their clients: applications, and the database behind them.

use kurabe_core::observation::{Endpoint, TierUse};

/// Each tier's name and where it listens; nothing where the endpoint is one server.
pub(crate) fn of(endpoint: &Endpoint) -> Vec<(String, &Endpoint)> {
    let Endpoint::Tiers { applications, database } = endpoint else { return Vec::new() };
    let name = |number: usize| match applications.len() {
        1 => TierUse::APPLICATION.to_owned(),
        _ => format!("{} {}", TierUse::APPLICATION, number + 1),
    };
    let applications = applications.iter().enumerate().map(|(number, place)| (name(number), place));
    let database = database.iter().map(|place| (TierUse::DATABASE.to_owned(), &**place));
    applications.chain(database).collect()
}

/// Where clients connect: to the application, where there is one alone.
pub(crate) fn front(endpoint: &Endpoint) -> &Endpoint {
    match endpoint {
        Endpoint::Tiers { applications, .. } if applications.len() == 1 => &applications[0],
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_names_and_one_server_has_none() {
        let tcp = |port| Endpoint::Tcp { host: "127.0.0.1".into(), port };
        let two = Endpoint::Tiers { applications: vec![tcp(1), tcp(2)], database: Some(Box::new(tcp(3))) };
        let names: Vec<String> = of(&two).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["application 1", "application 2", "database"]);
        let one = Endpoint::Tiers { applications: vec![tcp(1)], database: None };
        assert_eq!(of(&one), [("application".to_owned(), &tcp(1))]);
        assert_eq!(front(&one), &tcp(1));
        assert!(of(&tcp(1)).is_empty());
    }
}
