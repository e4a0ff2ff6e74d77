//! Comma-separated values: quoted fields may contain commas, line breaks and doubled quotes.

/// Limit of columns.
const MOST_COLUMNS: usize = 256;

/// A file with a header row, and rows of the same length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvTable {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl CsvTable {
    /// Reads at most this many rows. The error names the problem and its line.
    pub(super) fn read(text: &str, most_rows: usize) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut records = CsvRecords { rest: text, line: 1 };
        let columns =
            records.next().transpose()?.ok_or("the file is empty: its first row must name the columns")?.1;
        if columns.len() > MOST_COLUMNS {
            return Err(format!(
                "there are {} columns, and at most {MOST_COLUMNS} can be read",
                columns.len()
            ));
        }
        for (at, name) in columns.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(format!("column {} has no name", at + 1));
            }
            if columns[..at].contains(name) {
                return Err(format!("two columns have the name `{name}`"));
            }
        }
        let mut rows = Vec::new();
        for record in records {
            let (line, fields) = record?;
            if fields.len() != columns.len() {
                let (has, needs) = (fields.len(), columns.len());
                return Err(format!(
                    "the row on line {line} has {has} fields where the first row has {needs}"
                ));
            }
            if rows.len() == most_rows {
                return Err(format!("there are more than {most_rows} rows: split the file"));
            }
            rows.push(fields);
        }
        Ok(Self { columns, rows })
    }
}

/// Yields records with their first line's number. Skips empty lines.
struct CsvRecords<'a> {
    rest: &'a str,
    line: usize,
}

impl Iterator for CsvRecords<'_> {
    type Item = Result<(usize, Vec<String>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')) {
            (self.rest, self.line) = (rest, self.line + 1);
        }
        if self.rest.is_empty() {
            return None;
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(rest) => match self.quoted(rest) {
                    Ok(field) => field,
                    Err(problem) => {
                        self.rest = "";
                        return Some(Err(problem));
                    }
                },
                None => {
                    let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                    let (field, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    let is_last = !rest.starts_with(',');
                    if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field }.to_owned()
                }
            };
            fields.push(field);
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        if let Some(rest) = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')) {
            (self.rest, self.line) = (rest, self.line + 1);
        }
        Some(Ok((line, fields)))
    }
}

impl CsvRecords<'_> {
    fn quoted<'a>(&mut self, mut inside: &'a str) -> Result<String, String>
    where
        Self: 'a,
    {
        let (began, mut field) = (self.line, String::new());
        loop {
            let Some(end) = inside.find('"') else {
                return Err(format!("the field that begins on line {began} has no closing quote"));
            };
            let (part, rest) = inside.split_at(end);
            self.line += part.matches('\n').count();
            field.push_str(part);
            let rest = &rest[1..];
            match rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    inside = rest;
                }
                None => {
                    let ends = rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n");
                    if !ends {
                        return Err(format!("line {} goes on after a closing quote", self.line));
                    }
                    // `rest` is a suffix of the remaining text.
                    self.rest = &self.rest[self.rest.len() - rest.len()..];
                    return Ok(field);
                }
            }
        }
    }
}

/// One row with its line end.
pub(super) fn row<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let fields = fields.into_iter().map(|field| match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    });
    let mut row = fields.collect::<Vec<_>>().join(",");
    row.push('\n');
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&str], rows: &[&[&str]]) -> CsvTable {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        CsvTable { columns: words(columns), rows: rows.iter().map(|row| words(row)).collect() }
    }

    #[test]
    fn quoted_and_plain_fields_are_read() {
        for (text, expected) in [
            ("a,b\n1,2\n", table(&["a", "b"], &[&["1", "2"]])),
            ("a,b\r\n1,2\r\n", table(&["a", "b"], &[&["1", "2"]])),
            ("\u{feff}a\nx", table(&["a"], &[&["x"]])),
            (
                "a,b\n\"x, y\",\"say \"\"hi\"\"\nthere\"\n",
                table(&["a", "b"], &[&["x, y", "say \"hi\"\nthere"]]),
            ),
            ("a,b\n,\n\n\"\",\n", table(&["a", "b"], &[&["", ""], &["", ""]])),
            ("a\n", table(&["a"], &[])),
        ] {
            assert_eq!(CsvTable::read(text, 10), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("", "the file is empty"),
            ("a,\n1,2", "column 2 has no name"),
            ("a,a\n1,2", "two columns have the name `a`"),
            ("a,b\n1,2\n3", "the row on line 3 has 1 fields where the first row has 2"),
            ("a\n\"x\n\ny", "the field that begins on line 2 has no closing quote"),
            ("a\n\"x\"y", "line 2 goes on after a closing quote"),
            ("a\n1\n2\n3", "there are more than 2 rows"),
        ] {
            let found = CsvTable::read(text, 2).expect_err("a problem");
            assert!(found.starts_with(expected), "{found}");
        }
        assert!(CsvTable::read(&"x,".repeat(1_000), 2).is_err());
    }

    #[test]
    fn written_rows_read_back_unchanged() {
        let fields = ["plain", "a,b", "say \"hi\"", "two\nlines", "", "tail\r"];
        let text = row(["a", "b", "c", "d", "e", "f"]) + &row(fields);
        let read = CsvTable::read(&text, 10).expect("it is read");
        assert_eq!(read.rows, [fields.map(str::to_owned)]);
    }
}
