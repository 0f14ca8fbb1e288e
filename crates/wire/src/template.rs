//! What a program wrote of a statement or of a request's path, with gaps for the values in it.

/// What stands for a literal in a template. No statement of a server that is supported can contain it.
pub const GAP: char = '\0';

/// A statement's text without its literals and comments, and these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split<'a> {
    /// The text, with a [`GAP`] for each literal.
    pub template: String,
    /// The literals with their quotes, in order.
    pub literals: Vec<&'a str>,
}

/// The kind of a statement, from its template: in one line, with `?` for each literal and parameter, and one for a list of
/// them.
pub fn fingerprint(template: &str) -> String {
    let mut shown = String::with_capacity(template.len());
    let (mut in_parameter, mut in_name) = (false, false);
    for c in template.chars() {
        // Commands of MongoDB have names such as `"$gt"`.
        in_name ^= c == '"';
        in_parameter = !in_name && ((in_parameter && c.is_ascii_digit()) || c == '$');
        match c {
            '$' if in_name => shown.push(c),
            GAP | '$' => shown.push('?'),
            _ if in_parameter => {}
            c => shown.push(c),
        }
    }
    let mut words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    // A sign belongs to its number. Lists of values and of rows have any length.
    for operator in ["= ", "(", ", ", "+ ", "- ", "* ", "/ ", "< ", "> "] {
        words = words.replace(&format!("{operator}-?"), &format!("{operator}?"));
    }
    for (list, one) in [("? ?", "?"), ("?, ?", "?"), ("?,?", "?"), ("(?), (?)", "(?)"), ("(?),(?)", "(?)")] {
        while words.contains(list) {
            words = words.replace(list, one);
        }
    }
    let trimmed = words.trim_matches([' ', ';']);
    trimmed.strip_prefix("? ").unwrap_or(trimmed).to_owned()
}
