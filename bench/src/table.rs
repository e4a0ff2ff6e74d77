//! Aligned columns for a terminal.

/// Rows of cells; the first row is the head.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The first column is flush left, the others right.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, column_width)) in row.iter().zip(&widths).enumerate() {
                let fill = " ".repeat(column_width - width(cell));
                if column == 0 {
                    line.push_str(cell);
                    line.push_str(&fill);
                } else {
                    line.push_str("  ");
                    line.push_str(&fill);
                    line.push_str(cell);
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Three or four digits that matter; a count stays a count.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1_000.0 {
        format!("{value:.0}")
    } else if value >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::default();
        for row in [["metric", "a", "b"], ["x", "1.00", "-"], ["longer one", "2", "300"]] {
            table.push(row.map(str::to_owned).to_vec());
        }
        assert_eq!(table.render(), "metric         a    b\nx           1.00    -\nlonger one     2  300\n");
    }

    #[test]
    fn numbers_show_what_matters() {
        let shown: Vec<String> = [0.012_3, 5.0, 47.256, 180.298, 2_032.4, 1_001.0].map(number).to_vec();
        assert_eq!(shown, ["0.01", "5", "47.26", "180.3", "2032", "1001"]);
    }
}
