//! The namespaces of a target's own server and of its members.

use super::member::{Member, place};
use crate::prelude::*;
use kurabe_core::sort;
use std::sync::Arc;

pub(super) struct CompositeNamespace {
    own: Box<dyn Namespace>,
    members: Arc<Vec<Member>>,
    /// The namespaces of the members, opened on first use; or the error after which a member was given up. It must not
    /// hold up the removal from the target's own server.
    opened: Vec<Option<Result<Box<dyn Namespace>>>>,
}

impl CompositeNamespace {
    pub(super) fn new(own: Box<dyn Namespace>, members: Arc<Vec<Member>>) -> Self {
        let opened = members.iter().map(|_| None).collect();
        Self { own, members, opened }
    }

    /// Does something where a collection is.
    fn on<T>(
        &mut self,
        collection: &Collection,
        work: impl FnOnce(&mut dyn Namespace) -> Result<T>,
    ) -> Result<T> {
        match place(&self.members, collection)? {
            None => work(&mut *self.own),
            Some(at) => self.on_member(at, work),
        }
    }

    fn on_member<T>(&mut self, at: usize, work: impl FnOnce(&mut dyn Namespace) -> Result<T>) -> Result<T> {
        let Member { role, driver, .. } = &self.members[at];
        let of_member = |error: Error| error.context(role.word());
        let opened = match &mut self.opened[at] {
            Some(opened) => opened,
            None => self.opened[at].insert(Ok(driver.namespace().map_err(of_member)?)),
        };
        opened.as_mut().map_err(|lost| lost.clone()).and_then(|member| work(&mut **member)).map_err(of_member)
    }

    /// Does something on a member. After an error the member is given up, and [`Namespace::finish`] returns the error.
    fn attempt<T>(&mut self, at: usize, work: impl FnOnce(&mut dyn Namespace) -> Result<T>) -> Option<T> {
        if let Some(Err(_)) = self.opened[at] {
            return None;
        }
        self.on_member(at, work).map_err(|lost| self.opened[at] = Some(Err(lost))).ok()
    }

    /// The members that may have other users.
    fn shared(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|at| !self.members[*at].ours).collect()
    }
}

impl Namespace for CompositeNamespace {
    fn claim(&mut self, run: &str) -> Result<()> {
        self.own.claim(run)?;
        for at in self.shared() {
            if self.members[at].claims {
                match self.on_member(at, |member| member.claim(run)) {
                    // It answered before the run began: what does not need it goes on.
                    Err(lost)
                        if matches!(
                            lost.kind(),
                            ErrorKind::ConnectionLost | ErrorKind::Timeout | ErrorKind::Unreachable
                        ) =>
                    {
                        self.opened[at] = Some(Err(lost));
                    }
                    claimed => claimed?,
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.create(collection))
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.clear(collection))
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        self.own.remove(name)?;
        // The data of a throwaway member is removed with its server; a cache may also have evicted the ownership table.
        for at in self.shared() {
            self.attempt(at, |member| {
                if member.list()?.iter().any(|known| known == name) { member.remove(name) } else { Ok(()) }
            });
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>> {
        let mut names = self.own.list()?;
        for at in self.shared() {
            names.extend(self.attempt(at, |member| member.list()).unwrap_or_default());
        }
        // A member may be the target's own database.
        sort::by(&mut names, Ord::cmp);
        names.dedup();
        Ok(names)
    }

    fn finish(&mut self) -> Result<()> {
        self.own.finish()?;
        for at in self.shared() {
            // Another target of this run may still have collections there.
            self.attempt(at, |member| if member.list()?.is_empty() { member.finish() } else { Ok(()) });
        }
        self.opened.iter().flatten().find_map(|opened| opened.as_ref().err()).cloned().map_or(Ok(()), Err)
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        Some(self)
    }

    fn keeps_insertion_order(&self) -> bool {
        self.own.keeps_insertion_order()
    }

    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>> {
        self.on(collection, |namespace| namespace.key_prefix(collection))
    }
}

impl TableStatistics for CompositeNamespace {
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.analyse(collection))
    }

    fn hold(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.hold_statistics(collection))
    }

    fn missing(&mut self, table: &str) -> Result<Option<String>> {
        self.own.unanalysed(table)
    }
}
