//! Where connections are while nobody attends to them.

use crate::conversation::Conversation;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Places that are made at once.
const SHEET: usize = 1024;

/// Open connections, found by the number of their file: the kernel gives the lowest that is free, so that the numbers
/// are as dense as a table wants them. Sheets are made when they are needed, and looked for without a lock.
pub(crate) struct Table {
    sheets: Vec<OnceLock<Box<[Mutex<Place>]>>>,
    /// No connection has had a higher number.
    highest: AtomicUsize,
}

#[derive(Default)]
enum Place {
    /// No connection has this number.
    #[default]
    Free,
    /// It waits for its client.
    Waits(Box<Conversation>),
    /// Somebody attends to it; something may have happened to it since.
    Attended(Option<Seen>),
}

/// What the kernel told of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The client has ended its half, or the connection is broken: what there is to read has an end.
    pub ends: bool,
}

impl Table {
    /// A table for files of numbers below `files`.
    pub(crate) fn new(files: usize) -> Self {
        let sheets = (0..files.div_ceil(SHEET)).map(|_| OnceLock::new()).collect();
        Self { sheets, highest: AtomicUsize::new(0) }
    }

    fn place(&self, number: usize) -> Option<MutexGuard<'_, Place>> {
        let sheet = self.sheets.get(number / SHEET)?;
        let sheet = sheet.get_or_init(|| (0..SHEET).map(|_| Mutex::default()).collect());
        Some(sheet.get(number % SHEET)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes known that somebody attends to a new connection; false where its number is beyond the table.
    pub(crate) fn open(&self, number: usize) -> bool {
        let Some(mut place) = self.place(number) else { return false };
        *place = Place::Attended(None);
        drop(place);
        // As a rule it is no higher, and nothing is written that other threads read.
        if self.highest.load(Ordering::Relaxed) < number {
            self.highest.fetch_max(number, Ordering::Relaxed);
        }
        true
    }

    /// Takes a connection to which something happened; nothing if somebody attends to it, who will be told, or if it is gone.
    pub(crate) fn take(&self, number: usize, seen: Seen) -> Option<(Box<Conversation>, Seen)> {
        let mut place = self.place(number)?;
        match &mut *place {
            Place::Free => None,
            Place::Attended(news) => {
                let ends = seen.ends || news.is_some_and(|news| news.ends);
                *news = Some(Seen { ends });
                None
            }
            Place::Waits(_) => Self::attend(&mut place).map(|conversation| (conversation, seen)),
        }
    }

    fn attend(place: &mut Place) -> Option<Box<Conversation>> {
        match std::mem::replace(place, Place::Attended(None)) {
            Place::Waits(conversation) => Some(conversation),
            other => {
                *place = other;
                None
            }
        }
    }

    /// Puts a connection back; it comes back with what has happened to it meanwhile.
    pub(crate) fn put(
        &self,
        number: usize,
        conversation: Box<Conversation>,
    ) -> Option<(Box<Conversation>, Seen)> {
        let mut place = self.place(number)?;
        if let Place::Attended(news) = &mut *place
            && let Some(seen) = news.take()
        {
            return Some((conversation, seen));
        }
        *place = Place::Waits(conversation);
        None
    }

    /// Frees the number of a connection. To be done before its file is closed: after it the number is another's.
    pub(crate) fn close(&self, number: usize) {
        if let Some(mut place) = self.place(number) {
            *place = Place::Free;
        }
    }

    /// Takes those that wait and of which `due` is true, one after the other.
    pub(crate) fn due(&self, due: impl Fn(&Conversation) -> bool, mut then: impl FnMut(Box<Conversation>)) {
        for number in 0..=self.highest.load(Ordering::Relaxed) {
            let made = self.sheets.get(number / SHEET).is_some_and(|sheet| sheet.get().is_some());
            let Some(mut place) = self.place(number).filter(|_| made) else { continue };
            if let Place::Waits(conversation) = &*place
                && due(conversation)
            {
                let taken = Self::attend(&mut place);
                drop(place);
                if let Some(conversation) = taken {
                    then(conversation);
                }
            }
        }
    }
}
