//! Further pages of the application, with which a client checks what the application stored.

use super::answer;
use super::store::Store;
use super::user::User;
use crate::defect::no_session;
use crate::prelude::*;

/// The kind of record that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Line,
    User,
}

/// Shows the line of the log, or the user, that the client names.
pub(super) struct Show {
    store: Arc<Store>,
    what: Shown,
    prepared: Option<Prepared>,
    key: Option<u64>,
    reply: Reply,
    user: User,
}

impl Show {
    pub(super) fn new(store: &Arc<Store>, what: Shown) -> Self {
        let (prepared, key, reply, user) = (None, None, Reply::new(), User::default());
        Self { store: Arc::clone(store), what, prepared, key, reply, user }
    }
}

impl Transaction for Show {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let operation = match self.what {
            Shown::Line => self.store.get_line(),
            Shown::User => self.store.get_user(),
        };
        self.prepared = Some(session.prepare(&operation)?);
        Ok(())
    }

    fn prepare_input(&mut self) {
        self.key = None;
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let key = self.key.and_then(|key| i64::try_from(key).ok());
        let key = key.ok_or_else(|| Error::usage("name the record to show: ?key=17"))?;
        let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
        session.execute(prepared, &[Value::Int(key)], &mut self.reply)
    }

    fn check(&mut self) -> Result<()> {
        let key = self.key.unwrap_or_default();
        if self.reply.rows() == 0 {
            return Err(Error::new(ErrorKind::NotFound, format!("{key} does not exist")));
        }
        match self.what {
            Shown::User => self.store.check_user(key, None, &self.reply, &mut self.user),
            Shown::Line => {
                let user = self.reply.field_int(0, 1).and_then(|user| u64::try_from(user).ok());
                let user =
                    user.ok_or_else(|| Error::mismatch(format!("line {key} of the log has no user")))?;
                self.user.number = user;
                self.store.check_line(key, user, &self.reply)
            }
        }
    }
}

impl Page for Show {
    fn set_key(&mut self, key: u64) -> Result<()> {
        self.key = Some(key);
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        match self.what {
            Shown::User => answer::user(&self.user, out),
            Shown::Line => {
                answer::line(self.store.seed, self.key.unwrap_or_default(), self.user.number, out);
            }
        }
    }
}
