//! The kind of server.

use super::bson::Raw;
use super::client::Link;
use super::hello::Hello;
use kurabe_core::Result;
use kurabe_core::driver::Pace;

/// The kind of server, queried once per driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deployment {
    pub(super) engine: &'static str,
    pub(super) version: String,
    /// The MongoDB version that another server claims compatibility with.
    pub(super) like: Option<String>,
    pub(super) hello: Hello,
    /// Whether it is FerretDB 1, whose index of keys has text only.
    pub(super) indexes_text_only: bool,
    /// Why it has no transactions; `None` if it has them.
    pub(super) no_transactions: Option<String>,
}

impl Deployment {
    pub(super) fn ask(link: &mut Link) -> Result<Self> {
        let build = link.ask(|out| {
            out.int("buildInfo", 1);
        })?;
        Ok(Self::of(&link.hello, build.raw()))
    }

    fn of(hello: &Hello, build: Raw<'_>) -> Self {
        let version = build.text("version").unwrap_or("0 (not said)").to_owned();
        // FerretDB 1 reports its version in a field, FerretDB 2 in a nested document.
        let nested = || build.document("ferretdb").and_then(|document| document.text("version"));
        let first = build.text("ferretdbVersion");
        let ferret = first.or_else(nested);
        let no_transactions = match (&ferret, hello.set.is_some() || hello.is_router) {
            (Some(_), _) => Some("FerretDB has no transactions of several requests".to_owned()),
            (None, true) if hello.has_sessions => None,
            (None, _) => {
                Some("MongoDB has transactions on replica sets only, and this server is in none".to_owned())
            }
        };
        let (engine, version, like) = match ferret {
            Some(ferret) => ("FerretDB", ferret.trim_start_matches('v').to_owned(), Some(version)),
            None => ("MongoDB", version, None),
        };
        let indexes_text_only = first.is_some();
        Self { engine, version, like, hello: hello.clone(), indexes_text_only, no_transactions }
    }

    /// FerretDB 1 took 20 s to load 100,000 documents, count them and read them back, and 1.1 s to search them.
    pub(super) fn pace(&self) -> Pace {
        Pace {
            loaded_per_second: if self.indexes_text_only { 5e3 } else { 300e3 },
            scanned_per_second: self.indexes_text_only.then_some(80e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bson::Document;
    use super::*;

    #[test]
    fn deployment_is_read_from_hello_and_build_info() {
        let build = |fields: &[(&str, &str)]| {
            Document::of(|out| {
                for (name, value) in fields {
                    out.text(name, value);
                }
            })
        };
        let old = build(&[("version", "7.0.42"), ("ferretdbVersion", "v1.24.0")]);
        let ferret = Deployment::of(&Hello::default(), old.raw());
        assert_eq!((ferret.engine, ferret.version.as_str()), ("FerretDB", "1.24.0"));
        assert_eq!(ferret.like.as_deref(), Some("7.0.42"));
        assert!(ferret.no_transactions.is_some() && ferret.pace().scanned_per_second.is_some());
        let new = Document::of(|out| {
            out.text("version", "7.0.77").begin("ferretdb").text("version", "v2.0.0").end();
        });
        let ferret = Deployment::of(&Hello::default(), new.raw());
        assert_eq!((ferret.engine, ferret.version.as_str()), ("FerretDB", "2.0.0"));
        assert!(ferret.pace().scanned_per_second.is_none(), "it has PostgreSQL's indexes");
        let build = build(&[("version", "8.0.4")]);
        let alone = Hello { has_sessions: true, ..Hello::default() };
        let deployment = Deployment::of(&alone, build.raw());
        assert_eq!((deployment.engine, deployment.version.as_str()), ("MongoDB", "8.0.4"));
        assert!(deployment.no_transactions.is_some_and(|reason| reason.contains("replica sets only")));
        let members = ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec();
        let member = Hello { set: Some("rs".to_owned()), members, ..alone.clone() };
        let member = Deployment::of(&member, build.raw());
        assert_eq!((member.no_transactions, member.hello.members.len()), (None, 3));
        let router = Deployment::of(&Hello { is_router: true, ..alone }, build.raw());
        assert!(router.hello.is_router && router.no_transactions.is_none());
    }
}
