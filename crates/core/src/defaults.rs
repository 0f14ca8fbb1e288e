//! Which fields of records are not written.

/// Whether a value is the default one, which is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
