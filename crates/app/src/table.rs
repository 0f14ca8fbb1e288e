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
            if self.sheets.get(number / SHEET).is_none_or(|sheet| sheet.get().is_none()) {
                continue;
            }
            let Some(mut place) = self.place(number) else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn put(table: &Table, number: usize) -> Option<(Box<Conversation>, Seen)> {
        let (stream, _) = UnixStream::pair().unwrap();
        table.put(number, Box::new(Conversation::new(stream.into(), Duration::from_secs(60))))
    }

    const END: Seen = Seen { ends: true };
    const MORE: Seen = Seen { ends: false };

    #[test]
    fn what_happens_to_a_connection_that_is_attended_to_is_told_when_it_is_put_back_and_not_to_others() {
        let table = Table::new(5_000);
        assert!(table.open(4_321));
        assert!(table.take(4_321, MORE).is_none() && table.take(4_321, END).is_none());
        assert!(table.take(4_321, MORE).is_none());
        let (back, seen) = put(&table, 4_321).unwrap();
        assert_eq!(seen, END, "the end was told once and is forgotten");
        assert!(table.put(4_321, back).is_none());
        assert_eq!(table.take(4_321, MORE).unwrap().1, MORE);
    }

    #[test]
    fn news_of_a_connection_that_is_gone_is_nobodys() {
        let table = Table::new(100);
        table.open(7);
        put(&table, 7);
        table.close(7);
        assert!(table.take(7, END).is_none());
        // Its number is the next one's, who has not heard of it.
        table.open(7);
        assert!(put(&table, 7).is_none());
        assert!(!table.open(1 << 20) && table.take(1 << 20, END).is_none());
    }

    #[test]
    fn those_that_are_attended_to_are_not_taken_by_the_porter() {
        let table = Table::new(3_000);
        for number in [3, 1_500, 2_999] {
            table.open(number);
            put(&table, number);
        }
        let attended = table.take(1_500, MORE);
        let mut taken = Vec::new();
        table.due(|_| true, |conversation| taken.push(conversation));
        assert_eq!((attended.is_some(), taken.len()), (true, 2));
    }
}
