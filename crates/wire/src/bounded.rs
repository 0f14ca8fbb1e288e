//! Texts by name, of which a hostile client cannot make any number.

use std::collections::HashMap;
use std::hash::Hash;

const COUNT: usize = 10_000;
/// The maximum size of all texts, in bytes.
const SIZE: usize = 8 << 20;

pub(crate) trait Size {
    fn size(&self) -> usize;
}

impl Size for String {
    fn size(&self) -> usize {
        self.len()
    }
}

/// Texts, or other values, by name. When it is full, further ones are not kept.
#[derive(Debug)]
pub(crate) struct Texts<K, V = String> {
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
    pub(crate) fn insert(&mut self, name: K, text: impl Into<V>) {
        self.remove(&name);
        let text = text.into();
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
        let mut texts = Texts::<_, String>::default();
        let long = "x".repeat(SIZE / 2);
        texts.insert(1, long.as_str());
        texts.insert(2, long.as_str());
        texts.insert(3, "x");
        assert_eq!(texts.get(&3), None);
        texts.insert(1, "y");
        texts.insert(3, "x");
        assert_eq!(
            (texts.get(&1).map(String::as_str), texts.get(&3).map(String::as_str)),
            (Some("y"), Some("x"))
        );
    }
}
