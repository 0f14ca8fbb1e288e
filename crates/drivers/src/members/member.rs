//! A server of a target beside its own, and which collections are on it.

use crate::prelude::*;
use kurabe_core::remote::{RemoteCollection, RemoteServer};

/// What a member is to its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The cache with this name, to which collections refer.
    Cache(String),
    Remote(RemoteServer),
}

impl Role {
    /// Its name in messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cache(_) => "the cache",
            Self::Remote(RemoteServer::Same) => "the target's own server",
            Self::Remote(RemoteServer::Second) => "the second instance",
            Self::Remote(RemoteServer::Host) => "the instance on a second host",
            Self::Remote(RemoteServer::HostJumbo) => "the instance on a second host with an MTU of 9,000",
            Self::Remote(RemoteServer::Given) => "the remote server",
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }
}

/// A server of a target beside its own.
pub struct Member {
    pub role: Role,
    pub driver: Box<dyn Driver>,
    pub facts: ServerFacts,
    /// Whether it is a throwaway server without other users, which needs no claim and no cleanup.
    pub ours: bool,
    /// Whether this target claims the member's namespace: if several targets share a member, only the first does.
    pub claims: bool,
}

/// The index of the member that a collection is on; `None` if the target's own server has it, or reads it by a link.
pub(super) fn place(members: &[Member], collection: &Collection) -> Result<Option<usize>> {
    let role = match (&collection.cache, &collection.remote) {
        (Some(name), _) => Role::Cache(name.clone()),
        (None, Some(RemoteCollection { server, link: None })) if *server != RemoteServer::Same => {
            Role::Remote(*server)
        }
        _ => return Ok(None),
    };
    let missing = || match &role {
        Role::Cache(name) if name == "as_is" => Error::unsupported(
            "there is no running cache: --cache-size as-is needs --cache with the URL of one",
        ),
        Role::Cache(_) => Error::unsupported(
            "a size can be set only for a throwaway cache, which --cache up:memcached or up:redis starts; \
             --cache-size as-is uses a running cache unchanged",
        ),
        Role::Remote(_) => {
            Error::new(ErrorKind::Internal, format!("this run has not opened {}", role.word()))
        }
    };
    members.iter().position(|member| member.role == role).ok_or_else(missing).map(Some)
}
