//! Texts by name, of which a hostile client cannot make any number.

use std::collections::HashMap;
use std::hash::Hash;

const COUNT: usize = 10_000;
/// The maximum size of all texts, in bytes.
const SIZE: usize = 8 << 20;

pub(crate) trait Size {
    fn size(&self) -> usize;
}

/// Texts, or other values, by name. When it is full, further ones are not kept.
#[derive(Debug)]
pub(crate) struct Texts<K, V> {
    texts: HashMap<K, V>,
    size: usize,
}

impl<K, V> Default for Texts<K, V> {
    fn default() -> Self {
        Self { texts: HashMap::new(), size: 0 }
    }
}

impl<K: Eq + Hash, V: Size> Texts<K, V> {
    /// Keeps a text, in place of the one with the same name.
    pub(crate) fn insert(&mut self, name: K, text: V) {
        self.remove(&name);
        if self.texts.len() < COUNT && self.size + text.size() <= SIZE {
            self.size += text.size();
            self.texts.insert(name, text);
        }
    }

    pub(crate) fn remove(&mut self, name: &K) {
        if let Some(text) = self.texts.remove(name) {
            self.size -= text.size();
        }
    }

    /// The text, if it was kept.
    pub(crate) fn get(&self, name: &K) -> Option<&V> {
        self.texts.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_store_keeps_no_further_texts_until_one_is_removed() {
        let one = |text: &str| vec![text.to_owned()];
        let long = "x".repeat(SIZE / 2 - one("").size());
        let mut texts = Texts::default();
        texts.insert(1, one(&long));
        texts.insert(2, one(&long));
        texts.insert(3, one("x"));
        assert_eq!(texts.get(&3), None);
        texts.insert(1, one("y"));
        texts.insert(3, one("x"));
        assert_eq!((texts.get(&1), texts.get(&3)), (Some(&one("y")), Some(&one("x"))));
    }
}
