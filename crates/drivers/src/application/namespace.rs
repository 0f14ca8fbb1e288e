//! The namespace of an application, which does nothing: the application keeps its own data.

use crate::prelude::*;
pub(super) struct ApplicationNamespace;

impl Namespace for ApplicationNamespace {
    fn claim(&mut self, _run: &str) -> Result<()> {
        Ok(())
    }

    fn create(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    fn clear(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
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
