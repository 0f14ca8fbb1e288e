//! Reads the CSV of `kurabe report`.

/// The fields of a line. A field in quotation marks may have commas, and doubled quotation marks stand for one.
pub fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut all, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            other => push(&mut all, other),
        }
    }
    all
}

fn push(all: &mut [String], character: char) {
    if let Some(last) = all.last_mut() {
        last.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_field_may_have_commas_and_quotation_marks() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d\r"), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }
}
