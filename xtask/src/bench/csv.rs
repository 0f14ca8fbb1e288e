//! Reads the CSV of `kurabe report`.

/// The rows of a report, by the names of their columns.
pub struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// From where the report begins. An error if it has no row.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("run,")).map(fields);
        let names = lines.next().unwrap_or_default();
        let rows: Vec<Vec<String>> = lines.collect();
        if rows.is_empty() {
            Err(format!("a report without results: {text}"))
        } else {
            Ok(Self { names, rows })
        }
    }

    /// The sum of a column; an error if a row has no number there, as that of a failed trial.
    pub fn sum(&self, column: &str) -> Result<f64, String> {
        let at = self.names.iter().position(|name| name == column);
        let number = |row: &Vec<String>| row.get(at?)?.parse::<f64>().ok();
        let sum: Option<f64> = self.rows.iter().map(number).sum();
        sum.ok_or_else(|| format!("a report without '{column}' in each row: {:?}", self.rows))
    }

    pub fn mean(&self, column: &str) -> Result<f64, String> {
        Ok(self.sum(column)? / self.rows.len() as f64)
    }
}

/// The fields of a line. A field in quotation marks may have commas, and doubled quotation marks stand for one.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field) = (Vec::new(), String::new());
    let mut quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    all.push(field);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_field_may_have_commas_and_quotation_marks() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d\r"), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn figure_of_a_report_is_that_of_all_its_rows() {
        let text = "kurabe: warning: x\nrun,why,rate,n\na,,100.0,50\n\"a,b\",\"1, 2\",300.0,60\n";
        let table = Table::read(text).unwrap();
        assert_eq!((table.mean("rate"), table.sum("n")), (Ok(200.0), Ok(110.0)));
        assert!(table.mean("other").is_err() && Table::read("run,rate\n").is_err());
        // Of a failed trial there is no figure.
        assert!(Table::read(&format!("{text}a,failed,,\n")).unwrap().mean("rate").is_err());
    }
}
