//! Tiers among several servers: applications, the database behind them, and remote servers.

use kurabe_core::observation::{Endpoint, Member, Tier};

/// Each tier's name and endpoint; empty if there are no tiers. Several remote servers are one tier: a trial uses one
/// of them, and the others are idle.
pub(crate) fn of(endpoint: &Endpoint) -> Vec<(String, Endpoint)> {
    let applications = at(endpoint, Tier::Application).enumerate();
    let several = applications.clone().nth(1).is_some();
    let name = |number: usize| {
        let name = Tier::Application.name();
        if several { format!("{name} {}", number + 1) } else { name.to_owned() }
    };
    let databases =
        at(endpoint, Tier::Database).map(|place| (Tier::Database.name().to_owned(), place.clone()));
    let remotes: Vec<&Endpoint> = at(endpoint, Tier::Remote).collect();
    let remote = match remotes[..] {
        [] => None,
        [alone] => Some(alone.clone()),
        _ => {
            let member = |endpoint: &Endpoint| Member { endpoint: endpoint.clone(), tier: None };
            Some(Endpoint::Composite(remotes.into_iter().map(member).collect()))
        }
    };
    let remote = remote.map(|place| (Tier::Remote.name().to_owned(), place));
    let applications = applications.map(|(number, place)| (name(number), place.clone()));
    applications.chain(databases).chain(remote).collect()
}

/// The endpoint to which clients connect: the application, if there is only one.
pub(crate) fn front(endpoint: &Endpoint) -> &Endpoint {
    let mut applications = at(endpoint, Tier::Application);
    match (applications.next(), applications.next()) {
        // Its first endpoint is the one that clients connect to; the others are behind it.
        (Some(Endpoint::Composite(members)), None) => {
            members.first().map_or(endpoint, |first| &first.endpoint)
        }
        (Some(alone), None) => alone,
        _ => endpoint,
    }
}

fn at(endpoint: &Endpoint, tier: Tier) -> impl Iterator<Item = &Endpoint> + Clone {
    let members: &[Member] = if let Endpoint::Composite(members) = endpoint { members } else { &[] };
    members.iter().filter(move |member| member.tier == Some(tier)).map(|member| &member.endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_names_and_one_server_has_none() {
        let tcp = |port| Endpoint::Tcp { host: "127.0.0.1".into(), port };
        let together = |members: &[(u16, Option<Tier>)]| {
            let member = |&(port, tier)| Member { endpoint: tcp(port), tier };
            Endpoint::Composite(members.iter().map(member).collect())
        };
        let (application, database) = (Some(Tier::Application), Some(Tier::Database));
        let two = together(&[(1, application), (2, application), (3, database)]);
        let names: Vec<String> = of(&two).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["application 1", "application 2", "database"]);
        assert_eq!(front(&two), &two);
        let one = together(&[(1, application)]);
        assert_eq!(of(&one), [("application".to_owned(), tcp(1))]);
        assert_eq!(front(&one), &tcp(1));
        assert!(of(&tcp(1)).is_empty());
        // Remote servers are one tier.
        let remote = Some(Tier::Remote);
        let linked = together(&[(1, database), (2, remote)]);
        assert_eq!(of(&linked), [("database".to_owned(), tcp(1)), ("remote".to_owned(), tcp(2))]);
        let names = |all: &Endpoint| of(all).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&together(&[(1, database), (2, remote), (3, remote)])), ["database", "remote"]);
        // A store and its cache are not tiers: clients connect to both.
        let cached = together(&[(1, None), (2, None)]);
        assert!(of(&cached).is_empty());
        assert_eq!(front(&cached), &cached);
    }

    #[test]
    fn clients_connect_to_first_endpoint_of_application() {
        let tcp = Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 };
        let member = |endpoint, tier| Member { endpoint, tier };
        let behind = member(Endpoint::Unix("/run/php.sock".into()), None);
        let application = Endpoint::Composite(vec![member(tcp.clone(), None), behind]);
        let whole = Endpoint::Composite(vec![member(application.clone(), Some(Tier::Application))]);
        assert_eq!(front(&whole), &tcp);
        assert_eq!(of(&whole), [("application".to_owned(), application)]);
    }
}
