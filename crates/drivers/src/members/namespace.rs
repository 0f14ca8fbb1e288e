//! The namespaces of a target's own server and of its members.

use super::{Members, Place};
use crate::prelude::*;
use kurabe_core::sort;

pub(crate) struct PairNamespace {
    store: Box<dyn Namespace>,
    members: Members,
    place: Place,
    /// The namespaces of the members, opened on first use.
    namespaces: Vec<Option<Box<dyn Namespace>>>,
    /// The error after which a member was given up. It must not hold up the removal from the target's own server.
    lost: Vec<Option<Error>>,
}

impl PairNamespace {
    pub(crate) fn new(store: Box<dyn Namespace>, members: Members, place: Place) -> Self {
        let namespaces = members.iter().map(|_| None).collect();
        let lost = members.iter().map(|_| None).collect();
        Self { store, members, place, namespaces, lost }
    }

    /// Does something where a collection is.
    fn on<T>(
        &mut self,
        collection: &Collection,
        work: impl FnOnce(&mut dyn Namespace) -> Result<T>,
    ) -> Result<T> {
        match (self.place)(&self.members, collection).transpose()? {
            None => work(&mut *self.store),
            Some(at) => match &self.lost[at] {
                Some(lost) => Err(lost.clone()),
                None => self.member(at).and_then(work).map_err(|error| error.context(self.members[at].role)),
            },
        }
    }

    fn member(&mut self, at: usize) -> Result<&mut dyn Namespace> {
        let member = &self.members[at];
        let namespace = match self.namespaces[at].take() {
            Some(namespace) => namespace,
            None => member.driver.namespace()?,
        };
        Ok(&mut **self.namespaces[at].insert(namespace))
    }

    /// Does something on a member. After an error the member is given up, and [`Namespace::finish`] returns the error.
    fn attempt<T>(&mut self, at: usize, work: impl FnOnce(&mut dyn Namespace) -> Result<T>) -> Option<T> {
        if self.lost[at].is_some() {
            return None;
        }
        let role = self.members[at].role;
        match self.member(at).and_then(work) {
            Ok(done) => Some(done),
            Err(error) => {
                self.lost[at] = Some(error.context(role));
                None
            }
        }
    }

    /// The members that may have other users.
    fn shared(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|at| !self.members[*at].ours).collect()
    }
}

impl Namespace for PairNamespace {
    fn claim(&mut self, run: &str) -> Result<()> {
        self.store.claim(run)?;
        for at in self.shared() {
            if self.members[at].claims {
                let claimed = self.member(at).and_then(|member| member.claim(run));
                match claimed.map_err(|error| error.context(self.members[at].role)) {
                    // It answered before the run began: what does not need it goes on.
                    Err(lost)
                        if matches!(
                            lost.kind(),
                            ErrorKind::ConnectionLost | ErrorKind::Timeout | ErrorKind::Unreachable
                        ) =>
                    {
                        self.lost[at] = Some(lost);
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
        self.store.remove(name)?;
        // The data of a throwaway member is removed with its server; a cache may also have evicted the ownership table.
        for at in self.shared() {
            self.attempt(at, |member| {
                if member.list()?.iter().any(|known| known == name) { member.remove(name) } else { Ok(()) }
            });
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>> {
        let mut names = self.store.list()?;
        for at in self.shared() {
            names.extend(self.attempt(at, |member| member.list()).unwrap_or_default());
        }
        // A member may be the target's own database.
        sort::by(&mut names, Ord::cmp);
        names.dedup();
        Ok(names)
    }

    fn finish(&mut self) -> Result<()> {
        self.store.finish()?;
        for at in self.shared() {
            // Another target of this run may still have collections there.
            self.attempt(at, |member| if member.list()?.is_empty() { member.finish() } else { Ok(()) });
        }
        self.lost.iter_mut().find_map(Option::take).map_or(Ok(()), Err)
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        Some(self)
    }

    fn keeps_insertion_order(&self) -> bool {
        self.store.keeps_insertion_order()
    }

    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>> {
        self.on(collection, |namespace| namespace.key_prefix(collection))
    }
}

impl TableStatistics for PairNamespace {
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.analyse(collection))
    }

    fn hold(&mut self, collection: &Collection) -> Result<()> {
        self.on(collection, |namespace| namespace.hold_statistics(collection))
    }

    fn missing(&mut self, table: &str) -> Result<Option<String>> {
        self.store.unanalysed(table)
    }
}
