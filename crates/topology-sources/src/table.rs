//! A plain table, one node per line: `node leaf spine …`, with blanks or commas between the
//! columns.

use thiserror::Error;

use crate::error::{Origin, SourceError};
use crate::levels::level_names;
use crate::places::Place;

/// The names that the first column of a header may have.
const HEADS: [&str; 6] = ["node", "nodes", "nodename", "name", "host", "hostname"];

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableMistake {
    #[error("no lines; write one for each node: node leaf spine")]
    NoLines,
    #[error("a header but no nodes; write a line for each: node leaf spine")]
    NoNodes,
    #[error("only one column; write the node and what is above it: node leaf spine")]
    OneColumn,
    #[error("{found} columns for {node:?} where line {first} has {expected}; write as many")]
    Columns { found: usize, node: String, first: usize, expected: usize },
    #[error("column {column} is empty; write a name between the commas")]
    EmptyCell { column: usize },
    #[error("two columns are called {name}; give each level a name of its own")]
    SameName { name: String },
    #[error("a column has no name; write one for each level: node,leaf,spine")]
    NoName,
    #[error("the levels have names in this line; leave out --levels")]
    HasNames,
}

/// The names of the levels and the locations of the nodes. If the file has no names, the given ones
/// are used.
pub fn read(
    file: &str,
    text: &str,
    given: &[String],
) -> Result<(Vec<String>, Vec<Place>), Vec<SourceError>> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, cells(line)));
    let mut lines = lines.filter(|(_, cells)| !cells.is_empty()).peekable();
    let header = lines.next_if(|(_, cells)| HEADS.contains(&cells[0].to_lowercase().as_str()));
    let Some((first, columns)) =
        header.as_ref().or(lines.peek()).map(|(line, cells)| (*line, cells.len()))
    else {
        return Err(vec![SourceError::of(file, TableMistake::NoLines)]);
    };
    let mut problems = Vec::new();
    let names = match &header {
        Some((line, cells)) => header_names(file, *line, cells, given),
        None => level_names(given, columns - 1).map_err(|mistake| SourceError::of(file, mistake)),
    };
    if columns == 1 {
        problems.push(SourceError::at(file, first, TableMistake::OneColumn));
    }
    let mut places = Vec::new();
    for (line, cells) in lines {
        if cells.len() != columns {
            let (found, node) = (cells.len(), cells[0].to_owned());
            let mistake = TableMistake::Columns { found, node, first, expected: columns };
            problems.push(SourceError::at(file, line, mistake));
        } else if let Some(empty) = cells.iter().position(|cell| cell.is_empty()) {
            let mistake = TableMistake::EmptyCell { column: empty + 1 };
            problems.push(SourceError::at(file, line, mistake));
        } else {
            let origin = Origin { file: file.to_owned(), line };
            let values = cells[1..].iter().map(|cell| (*cell).to_owned()).collect();
            places.push(Place { node: cells[0].to_lowercase(), values, origin: Some(origin) });
        }
    }
    if places.is_empty() && problems.is_empty() {
        problems.push(SourceError::of(file, TableMistake::NoNodes));
    }
    match names {
        Ok(names) if problems.is_empty() => Ok((names, places)),
        Ok(_) => Err(problems),
        Err(problem) => Err([vec![problem], problems].concat()),
    }
}

/// The columns of a line without its comment.
fn cells(line: &str) -> Vec<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    match line {
        "" => Vec::new(),
        _ if line.contains(',') => line.split(',').map(str::trim).collect(),
        _ => line.split_whitespace().collect(),
    }
}

fn header_names(
    file: &str,
    line: usize,
    cells: &[&str],
    given: &[String],
) -> Result<Vec<String>, SourceError> {
    let names: Vec<String> = cells[1..].iter().map(|cell| (*cell).to_owned()).collect();
    let doubtful = (1..names.len()).find(|index| names[..*index].contains(&names[*index]));
    let mistake = if let Some(twice) = doubtful {
        TableMistake::SameName { name: names[twice].clone() }
    } else if names.iter().any(String::is_empty) {
        TableMistake::NoName
    } else if !given.is_empty() {
        TableMistake::HasNames
    } else {
        return Ok(names);
    };
    Err(SourceError::at(file, line, mistake))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(problems: Vec<SourceError>) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    fn lines(text: &str) -> Result<Vec<String>, Vec<String>> {
        let (names, places) = read("t", text, &[]).map_err(told)?;
        let place = |place: Place| {
            format!(
                "{} {} {}",
                place.origin.expect("it is in a line"),
                place.node,
                place.values.join(" ")
            )
        };
        Ok(std::iter::once(names.join(" ")).chain(places.into_iter().map(place)).collect())
    }

    #[test]
    fn tables_have_blanks_or_commas_and_may_have_a_header() {
        let expected = ["leaf spine", "t:2 n1 l1 s1", "t:3 n2 l1 s1"];
        for text in [
            "# racks\nn1 l1 s1\nn2\tl1   s1 # the second\n\n",
            "node leaf spine\nN1 l1 s1\nn2 l1 s1",
            "Node, leaf, spine\nn1,l1,s1\n n2, l1 ,s1",
        ] {
            assert_eq!(lines(text).expect("it is a table"), expected, "{text}");
        }
        assert_eq!(lines("host rack\nn1 r1").expect("it is a table"), ["rack", "t:2 n1 r1"]);
        let given = ["row".to_owned(), "rack".to_owned()];
        assert_eq!(read("t", "n1 r1 a", &given).expect("they are as many").0, ["rack", "row"]);
    }

    #[test]
    fn all_wrong_lines_are_reported_at_once() {
        assert_eq!(
            lines("n1 l1 s1\nn2 l1\nn3,,s1").expect_err("two lines are wrong"),
            [
                "t:2: 2 columns for \"n2\" where line 1 has 3; write as many",
                "t:3: column 2 is empty; write a name between the commas"
            ]
        );
        for (text, hint) in [
            ("", "no lines"),
            ("# nothing", "no lines"),
            ("node leaf", "no nodes"),
            ("node leaf leaf\nn1 a b", "a name of its own"),
            ("node,,leaf\nn1,a,b", "no name"),
            ("n1\nn2", "only one column"),
        ] {
            let problems = lines(text).expect_err(text);
            assert!(problems[0].contains(hint), "{text}: {problems:?}");
        }
        let given = ["leaf".to_owned()];
        assert!(
            told(read("t", "node leaf\nn1 l1", &given).expect_err("both"))[0]
                .contains("leave out --levels")
        );
        assert!(
            told(read("t", "n1 l1 s1", &given).expect_err("too few"))[0]
                .contains("1 name and the network has 2 levels")
        );
    }
}
