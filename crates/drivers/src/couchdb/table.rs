//! A collection as CouchDB has it, a database of its own, and the paths of its documents.

use super::config::{Config, escape};
use super::id;
use super::session::Buffers;
use kurabe_core::Result;
use kurabe_core::collection::Collection;
use kurabe_core::value::Value;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) collection: Arc<Collection>,
    /// `/kurabe_a`
    pub(super) path: String,
    /// The fields that are not in the key.
    pub(super) rest: Vec<usize>,
}

impl Table {
    pub(super) fn new(collection: &Arc<Collection>, config: &Config) -> Self {
        Self {
            path: config.path(&collection.name),
            rest: (0..collection.fields.len()).filter(|field| !collection.key.contains(field)).collect(),
            collection: Arc::clone(collection),
        }
    }

    /// Makes the id and the path of the document with this key.
    pub(super) fn document_path<'v>(
        &self,
        key: impl Iterator<Item = &'v Value<'v>>,
        buffers: &mut Buffers,
    ) -> Result<()> {
        let Buffers { id, path, .. } = buffers;
        id.clear();
        for value in key {
            id::push(id, &self.collection.name, value)?;
        }
        path.clear();
        path.push_str(&self.path);
        path.push('/');
        escape(path, id);
        Ok(())
    }

    /// Makes the path of all documents whose key begins with these fields, or of the one whose whole key they are.
    pub(super) fn range_path(&self, key: &[Value<'_>], whole: bool, buffers: &mut Buffers) -> Result<()> {
        let Buffers { id, path, json } = buffers;
        id.clear();
        for value in key {
            id::push(id, &self.collection.name, value)?;
        }
        path.clear();
        path.push_str(&self.path);
        path.push_str("/_all_docs?include_docs=true");
        let mut text = |path: &mut String, name: &str, id: &str| {
            json.clear();
            super::document::push_text(json, id);
            path.push_str(name);
            escape(path, &String::from_utf8_lossy(json));
        };
        if whole {
            text(path, "&key=", id);
            return Ok(());
        }
        id.push(char::from(id::MARK));
        text(path, "&startkey=", id);
        id.pop();
        id.push(char::from(id::AFTER_MARK));
        text(path, "&endkey=", id);
        path.push_str("&inclusive_end=false");
        Ok(())
    }

    /// Makes the path of all documents whose key's first field is not less than the first value and less than the second.
    pub(super) fn between_path(&self, values: &[Value<'_>], buffers: &mut Buffers) -> Result<()> {
        let Buffers { id, path, json } = buffers;
        path.clear();
        path.push_str(&self.path);
        path.push_str("/_all_docs?include_docs=true");
        for (name, value) in ["&startkey=", "&endkey="].into_iter().zip(values) {
            id.clear();
            id::push(id, &self.collection.name, value)?;
            json.clear();
            super::document::push_text(json, id);
            path.push_str(name);
            escape(path, &String::from_utf8_lossy(json));
        }
        path.push_str("&inclusive_end=false");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::collection::{Field, FieldType};
    use kurabe_core::target::TargetUrl;

    #[test]
    fn a_key_is_a_path_and_the_begin_of_one_is_a_range() {
        let fields = vec![
            Field { name: "id", kind: FieldType::LongText },
            Field { name: "n", kind: FieldType::Int },
            Field { name: "data", kind: FieldType::LongText },
        ];
        let collection = Arc::new(Collection::new("kurabe_a", fields, vec![0, 1]));
        let config = Config::from_url(&TargetUrl::parse("couchdb://h/x/").unwrap()).unwrap();
        let (table, mut buffers) = (Table::new(&collection, &config), Buffers::default());
        assert_eq!(table.rest, [2]);
        let key = [Value::Text("a\\b"), Value::Int(1)];
        table.document_path(key.iter(), &mut buffers).unwrap();
        assert_eq!(buffers.path, "/x%2Fkurabe_a/%21a%5Cb%218000000000000001");
        table.range_path(&key[..1], false, &mut buffers).unwrap();
        assert_eq!(
            buffers.path,
            "/x%2Fkurabe_a/_all_docs?include_docs=true&startkey=%22%21a%5C%5Cb%21%22&endkey=%22%21a%5C%5Cb%5C%22%22\
             &inclusive_end=false"
        );
        table.between_path(&[Value::Text("a"), Value::Text("b")], &mut buffers).unwrap();
        assert!(
            buffers.path.ends_with("&startkey=%22%21a%22&endkey=%22%21b%22&inclusive_end=false"),
            "{}",
            buffers.path
        );
        table.range_path(&key, true, &mut buffers).unwrap();
        assert!(buffers.path.ends_with("&key=%22%21a%5C%5Cb%218000000000000001%22"), "{}", buffers.path);
    }
}
