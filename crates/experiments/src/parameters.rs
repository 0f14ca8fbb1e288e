//! The parameters of a request, in reused memory.

use crate::prelude::*;

/// Keeps a vector's memory for the next values, which have another lifetime. `collect` reuses the allocation.
pub(crate) fn recycle(mut values: Vec<Value<'_>>) -> Vec<Value<'static>> {
    values.clear();
    values.into_iter().map(|_| Value::Null).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused() {
        let text = String::from("another value");
        let values = vec![Value::Text(&text); 8];
        let (at, room) = (values.as_ptr() as usize, values.capacity());
        let again = recycle(values);
        assert_eq!((again.as_ptr() as usize, again.capacity(), again.len()), (at, room, 0));
    }
}
