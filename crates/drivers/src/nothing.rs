//! The namespace of a target in which Kurabe creates nothing: a listener keeps nothing, and an application its own data.

use crate::prelude::*;

pub(crate) struct Nothing;

impl Namespace for Nothing {
    fn claim(&mut self, _run: &str) -> Result<()> {
        Ok(())
    }

    fn create(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    fn clear(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        None
    }

    fn keeps_insertion_order(&self) -> bool {
        true
    }

    fn key_prefix(&mut self, _collection: &Collection) -> Result<Option<String>> {
        Ok(None)
    }

    fn remove(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
