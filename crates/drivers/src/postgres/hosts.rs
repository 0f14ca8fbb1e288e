//! Several hosts of one URL, and which of them a run uses (PostgreSQL manual, "Specifying Multiple Hosts").

use super::config::{ATTRIBUTES, Attributes, Config};
use super::lean::Lean;
use crate::prelude::*;
use crate::wire::Stream;
use crate::wire::link::{Query as _, value};
use std::sync::{Arc, OnceLock};

impl Attributes {
    /// Why the server of a connection is not the wanted one; `None` if it is.
    fn unsuitable(self, link: &mut Lean<Stream>) -> Result<Option<&'static str>> {
        let mut is_on = |sql: &str| value(link, sql).map(|text| matches!(text.as_deref(), Some("t" | "on")));
        Ok(match self {
            Self::Any => None,
            Self::ReadWrite => is_on("SHOW transaction_read_only")?.then_some("its transactions only read"),
            Self::ReadOnly => (!is_on("SHOW transaction_read_only")?).then_some("its transactions may write"),
            Self::Primary => is_on("SELECT pg_catalog.pg_is_in_recovery()")?.then_some("it is a standby"),
            Self::Standby | Self::PreferStandby => {
                (!is_on("SELECT pg_catalog.pg_is_in_recovery()")?).then_some("it is no standby")
            }
        })
    }
}

/// The hosts of a target. The first connection decides, and all others of the run are to the same host: a run measures
/// one server.
pub(super) struct Hosts {
    all: Vec<Arc<Config>>,
    chosen: OnceLock<usize>,
}

impl Hosts {
    pub(super) fn new(all: Vec<Config>) -> Self {
        Self { all: all.into_iter().map(Arc::new).collect(), chosen: OnceLock::new() }
    }

    /// The chosen host, else the first.
    pub(super) fn first(&self) -> Option<&Config> {
        self.all.get(self.chosen.get().copied().unwrap_or_default()).map(Arc::as_ref)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Config> {
        self.all.iter_mut().map(Arc::make_mut)
    }

    /// The host to connect to.
    ///
    /// # Errors
    /// [`Unreachable`](ErrorKind::Unreachable) if none is the wanted one, with each one's reason; as in libpq, what a host
    /// refuses while it authenticates is not tried at the next.
    pub(super) fn get(&self) -> Result<&Arc<Config>> {
        let at = match (self.chosen.get(), &*self.all) {
            (Some(at), _) => *at,
            (None, [only]) if only.attributes == Attributes::Any => 0,
            (None, _) => {
                let found = self.find()?;
                *self.chosen.get_or_init(|| found)
            }
        };
        self.all.get(at).ok_or_else(|| Error::usage("postgres: no host is given"))
    }

    fn find(&self) -> Result<usize> {
        let wanted = self.all.first().map(|config| config.attributes).unwrap_or_default();
        let mut reasons = Vec::new();
        for (at, config) in self.all.iter().enumerate() {
            let reason = match Lean::connect(config, &ConnectOptions::default()) {
                Ok(mut link) => {
                    let unsuitable = wanted.unsuitable(&mut link)?;
                    link.quit()?;
                    let Some(why) = unsuitable else { return Ok(at) };
                    why.to_owned()
                }
                Err(error) if matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout) => {
                    error.to_string()
                }
                Err(error) => return Err(error.context(&config.place)),
            };
            reasons.push((at, format!("{}: {reason}", config.place)));
        }
        if wanted == Attributes::PreferStandby
            && let Some((at, _)) = reasons.iter().find(|(_, reason)| reason.ends_with("no standby"))
        {
            return Ok(*at);
        }
        let name = ATTRIBUTES.iter().find(|(_, each)| *each == wanted).map_or("", |(name, _)| name);
        let error =
            format!("none of {} hosts is the wanted one (target_session_attrs={name})", reasons.len());
        Err(Error::new(ErrorKind::Unreachable, error).log(reasons.iter().map(|(_, reason)| reason.as_str())))
    }
}
