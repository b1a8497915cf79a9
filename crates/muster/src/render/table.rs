//! Tables as kubectl prints them: upper-case headers, three spaces between columns (two where there
//! is little room), no borders.

use anstyle::Style;

use super::text::{DIM, cut_middle, styled, width};

const GUTTER: usize = 3;
/// The space between columns of a table that would otherwise be too wide.
const NARROW_GUTTER: usize = 2;
/// Columns are not cut below this width.
const NARROWEST: usize = 8;

pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Row>,
    /// The column that is cut before others.
    soft: Option<usize>,
}

#[derive(Default)]
pub struct Row {
    cells: Vec<(String, Style)>,
    /// Lines under the row, over all columns.
    below: Vec<String>,
}

impl Row {
    pub fn cell(self, text: impl ToString) -> Row {
        self.styled(text, Style::new())
    }

    pub fn styled(mut self, text: impl ToString, style: Style) -> Row {
        self.cells.push((text.to_string(), style));
        self
    }

    pub fn below(mut self, lines: Vec<String>) -> Row {
        self.below = lines;
        self
    }
}

impl Table {
    pub fn new(headers: &[&'static str]) -> Table {
        Table { headers: headers.to_vec(), rows: Vec::new(), soft: None }
    }

    /// The last column is cut before any other.
    pub fn soft_end(mut self) -> Table {
        self.soft = self.headers.len().checked_sub(1);
        self
    }

    pub fn push(&mut self, row: Row) {
        assert_eq!(row.cells.len(), self.headers.len(), "a cell for each header");
        self.rows.push(row);
    }

    /// The table in at most `most` columns; cells that are too long lose their middle.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let natural = self.widths();
        let gutter = if total(&natural, GUTTER) <= most { GUTTER } else { NARROW_GUTTER };
        let widths = self.cut(natural, gutter, most);
        let header =
            self.headers.iter().map(|header| ((*header).to_owned(), DIM)).collect::<Vec<_>>();
        let mut lines = vec![line(&header, &widths, gutter)];
        for row in &self.rows {
            lines.push(line(&row.cells, &widths, gutter));
            lines.extend(row.below.iter().cloned());
        }
        lines
    }

    /// Whether nothing has to be cut.
    pub fn fits(&self, most: usize) -> bool {
        total(&self.widths(), NARROW_GUTTER) <= most
    }

    /// The widths of the columns if nothing is cut.
    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            self.rows.iter().map(|row| width(&row.cells[column].0)).max().unwrap_or(0)
        };
        let headers = self.headers.iter().enumerate();
        headers.map(|(at, header)| width(header).max(widest(at))).collect()
    }

    fn cut(&self, mut widths: Vec<usize>, gutter: usize, most: usize) -> Vec<usize> {
        while total(&widths, gutter) > most {
            let soft = self.soft.filter(|&column| widths[column] > NARROWEST);
            let widest = (0..widths.len())
                .max_by_key(|&column| widths[column])
                .expect("a table has columns");
            let column = soft.unwrap_or(widest);
            if widths[column] <= NARROWEST {
                break;
            }
            widths[column] -= 1;
        }
        widths
    }
}

fn total(widths: &[usize], gutter: usize) -> usize {
    widths.iter().sum::<usize>() + gutter * widths.len().saturating_sub(1)
}

fn line(cells: &[(String, Style)], widths: &[usize], gutter: usize) -> String {
    let mut line = String::new();
    for (at, ((text, style), &column)) in cells.iter().zip(widths).enumerate() {
        let text = cut_middle(text, column);
        line += &styled(*style, &text);
        if at + 1 < cells.len() {
            line += &" ".repeat(column - width(&text) + gutter);
        }
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table, most: usize) -> Vec<String> {
        let lines = table.lines(most);
        lines.iter().map(|line| crate::terminal::plain(line)).collect()
    }

    #[test]
    fn columns_move_together_before_anything_is_cut() {
        let mut table = Table::new(&["NAME", "MIN"]);
        table.push(Row::default().cell("ring").cell("12"));
        assert_eq!(plain(&table, 10), ["NAME   MIN", "ring   12"]);
        assert_eq!(plain(&table, 9), ["NAME  MIN", "ring  12"]);
        assert!(table.fits(9) && !table.fits(8));
    }

    #[test]
    fn a_soft_end_is_cut_first() {
        let mut table = Table::new(&["NAME", "GANGS"]).soft_end();
        table.push(Row::default().cell("a-longer-name").cell("ring-and-wave"));
        assert_eq!(plain(&table, 25), ["NAME           GANGS", "a-longer-name  ring-…wave"]);
    }

    #[test]
    fn the_widest_column_is_cut() {
        let mut table = Table::new(&["NAME", "MIN"]);
        table.push(
            Row::default().cell("a-gang-with-a-long-name").cell(4).below(vec!["  waits".into()]),
        );
        assert_eq!(plain(&table, 20), ["NAME             MIN", "a-gang-…ng-name  4", "  waits"]);
    }
}
