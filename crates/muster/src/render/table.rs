//! Tables as kubectl prints them: upper-case headers, three spaces between columns, no borders.

use anstyle::Style;

use super::text::{DIM, cut_middle, styled, width};

const GUTTER: &str = "   ";
/// Columns are not cut to less than this.
const NARROWEST: usize = 8;

pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Row>,
    /// The column that gives way before others do.
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

    /// The table in at most `most` columns; what is too long loses its middle.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let widths = self.widths(most);
        let header =
            self.headers.iter().map(|header| ((*header).to_owned(), DIM)).collect::<Vec<_>>();
        let mut lines = vec![line(&header, &widths)];
        for row in &self.rows {
            lines.push(line(&row.cells, &widths));
            lines.extend(row.below.iter().cloned());
        }
        lines
    }

    /// How wide the table is if nothing is cut.
    pub fn width(&self) -> usize {
        total(&self.widths(usize::MAX))
    }

    fn widths(&self, most: usize) -> Vec<usize> {
        let widest = |column: usize| {
            self.rows.iter().map(|row| width(&row.cells[column].0)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self
            .headers
            .iter()
            .enumerate()
            .map(|(at, header)| width(header).max(widest(at)))
            .collect();
        while total(&widths) > most {
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

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GUTTER.len() * widths.len().saturating_sub(1)
}

fn line(cells: &[(String, Style)], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, ((text, style), &column)) in cells.iter().zip(widths).enumerate() {
        let text = cut_middle(text, column);
        line += &styled(*style, &text);
        if at + 1 < cells.len() {
            line += &" ".repeat(column - width(&text));
            line += GUTTER;
        }
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_end_gives_way_first() {
        let mut table = Table::new(&["NAME", "GANGS"]).soft_end();
        table.push(Row::default().cell("a-longer-name").cell("ring-and-wave"));
        let plain: Vec<String> =
            table.lines(26).iter().map(|line| crate::terminal::plain(line)).collect();
        assert_eq!(
            plain,
            ["NAME            GANGS", "a-longer-name   ring-…wave"].map(str::to_owned)
        );
    }

    #[test]
    fn the_widest_column_gives_way() {
        let mut table = Table::new(&["NAME", "MIN"]);
        table.push(
            Row::default().cell("a-gang-with-a-long-name").cell(4).below(vec!["  waits".into()]),
        );
        let plain: Vec<String> =
            table.lines(20).iter().map(|line| crate::terminal::plain(line)).collect();
        assert_eq!(
            plain,
            ["NAME             MIN", "a-gang-…g-name   4", "  waits"].map(str::to_owned)
        );
    }
}
