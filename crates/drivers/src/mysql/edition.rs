//! Licence edition of a MySQL server.
//!
//! The community editions of MySQL and MariaDB are licensed under the GPL, version 2, which does not restrict use.
//! MySQL's commercial editions are under Oracle's own terms. They report themselves: `SELECT VERSION()` gives
//! `5.7.42-enterprise-commercial-advanced-log` or `8.0.33-commercial`, and `version_comment` is
//! `MySQL Enterprise Server - Commercial`. No such clause is known for MariaDB's subscription.

use crate::info::BenchmarkClause;
use kurabe_core::facts::ServerFacts;

pub(super) const CLAUSE: BenchmarkClause = BenchmarkClause {
    name: "Oracle's licence for its programs, such as the Oracle Technology Network License Agreement, restrictions \
           (\"disclose results of any Program benchmark tests\")",
    says: "results of benchmark tests of a commercial edition of MySQL may not be disclosed without Oracle's prior \
           consent",
    source: "https://www.oracle.com/downloads/licenses/standard-license.html",
    holds_for: is_commercial,
};

fn is_commercial(facts: &ServerFacts) -> bool {
    let comment = facts.settings.iter().find(|setting| setting.name == "version_comment");
    let reported = [Some(facts.version.as_str()), comment.map(|setting| setting.value.as_str())];
    facts.engine == "MySQL"
        && reported.into_iter().flatten().any(|text| {
            let text = text.to_ascii_lowercase();
            text.contains("commercial") || text.contains("enterprise")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use kurabe_core::facts::Setting;

    fn facts(engine: &str, version: &str, comment: &str) -> ServerFacts {
        ServerFacts {
            engine: engine.into(),
            version: version.into(),
            settings: vec![Setting::new("version_comment", comment)],
            ..ServerFacts::default()
        }
    }

    #[test]
    fn clause_applies_only_to_commercial_editions_of_mysql() {
        let info = registry::find("mysql").unwrap();
        for (engine, version, comment, restricted) in [
            ("MySQL", "9.7.4", "MySQL Community Server - GPL", false),
            ("MySQL", "8.0.36-0ubuntu0.20.04.1-log", "(Ubuntu)", false),
            ("MySQL", "8.0.33-commercial", "MySQL Enterprise Server - Commercial", true),
            ("MySQL", "5.7.42-enterprise-commercial-advanced-log", "", true),
            ("MySQL", "8.4.3", "MySQL Enterprise Server - Commercial", true),
            ("MariaDB", "10.11.14-MariaDB-0+deb12u2", "Debian 12", false),
            ("MariaDB", "10.6.12-7-MariaDB-enterprise-log", "MariaDB Enterprise Server", false),
        ] {
            let clause = info.clause(&facts(engine, version, comment));
            assert_eq!(clause.is_some(), restricted, "{engine} {version} {comment}");
            // The clause also applies behind an application that reports the engine's name and version.
            let behind = facts(&format!("{engine} over HTTP"), version, comment);
            assert_eq!(
                registry::clause("http", &behind).is_some(),
                restricted,
                "{engine} {version} {comment}"
            );
        }
    }
}
