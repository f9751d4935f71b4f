//! Tables for a terminal.
//!
//! On a narrow terminal columns disappear, the least important first, rather than wrap: a wrapped
//! figure is misread.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

/// A rule below the titles and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table whose columns can be done without, in an order.
pub struct Columns {
    /// Title and when to drop: 0 never, otherwise the highest first.
    headers: Vec<(String, usize)>,
    rows: Vec<Vec<String>>,
    /// Whether the last row sums up the others.
    total: bool,
}

impl Columns {
    /// No rows yet. Each header has a title and says when to drop it.
    pub fn new(headers: &[(&str, usize)], total: bool) -> Columns {
        let headers = headers.iter().map(|(title, drop)| ((*title).to_owned(), *drop)).collect();
        Columns { headers, rows: Vec::new(), total }
    }

    /// Appends a row, one cell per column.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.headers.len(), "a row has a cell for every column");
        self.rows.push(row);
    }

    /// The widest selection of columns that fits.
    pub fn render(&self, width: usize) -> String {
        let mut kept: Vec<usize> = (0..self.headers.len()).collect();
        loop {
            let text = self.render_columns(&kept);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let next = kept.iter().copied().max_by_key(|&column| self.headers[column].1);
            match next {
                Some(column) if widest > width && self.headers[column].1 > 0 => kept.retain(|&k| k != column),
                _ => return text,
            }
        }
    }

    fn render_columns(&self, kept: &[usize]) -> String {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_header(kept.iter().map(|&column| Cell::new(&self.headers[column].0)));
        for row in &self.rows {
            table.add_row(kept.iter().map(|&column| Cell::new(&row[column])));
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding(if i == 0 { (0, 0) } else { (1, 0) });
            column.set_cell_alignment(if i == 0 { CellAlignment::Left } else { CellAlignment::Right });
        }
        let text = table.trim_fmt();
        let mut lines: Vec<&str> = text.lines().collect();
        if self.total
            && let Some(rule) = lines.iter().copied().find(|line| line.starts_with('─'))
        {
            lines.insert(lines.len() - 1, rule);
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(total: bool) -> Columns {
        let mut columns = Columns::new(&[("who", 0), ("how many", 2), ("how much", 1)], total);
        columns.push(vec!["one".into(), "1".into(), "1.5".into()]);
        columns.push(vec!["all".into(), "1,000".into(), "2".into()]);
        columns
    }

    #[test]
    fn a_narrow_terminal_loses_columns_not_rows() {
        let text = |width| columns(false).render(width);
        assert_eq!(
            text(100),
            "who  how many  how much\n───────────────────────\none         1       1.5\nall     1,000         2\n"
        );
        assert_eq!(text(22), "who  how much\n─────────────\none       1.5\nall         2\n");
        assert_eq!(text(1), "who\n───\none\nall\n", "what cannot be done without stays");
    }

    #[test]
    fn a_total_stands_below_a_rule() {
        let text = columns(true).render(100);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[3].starts_with('─') && lines[4].starts_with("all"), "{text}");
    }
}
