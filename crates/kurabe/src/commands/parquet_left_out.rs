//! What stands in for Parquet in a build without it: it refuses.

use kurabe_core::run::Run;
use kurabe_core::{Error, Result};

pub(super) fn render(_: &Run) -> Result<Vec<u8>> {
    Err(refusal())
}

fn refusal() -> Error {
    Error::not_built_in("--format parquet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::{ErrorKind, FULL_BUILD};

    #[test]
    fn format_is_refused_with_the_build_that_has_it() {
        let error = refusal();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let text = error.to_string();
        assert!(text.contains("--format parquet is not built into") && text.contains(FULL_BUILD), "{text}");
    }
}
