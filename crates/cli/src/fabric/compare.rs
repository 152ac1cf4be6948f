//! A table of a guide beside its predictions, cell by cell.

use linerate_fabric::guide::{self, Role, Table};
use linerate_fabric::model::tables::TRANSFER;
use linerate_fabric::predict::{Prediction, TableModel};
use linerate_lab::report::grid::{Cell, Grid};
use linerate_lab::report::page::{Compared, Comparison};

/// One cell of a guide's table with what the model says.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// Row from 0.
    pub row: usize,
    /// Column from 0.
    pub column: usize,
    /// What is printed.
    pub published: &'a guide::Cell,
    /// What the printed number is.
    pub role: Option<Role>,
    /// Its unit.
    pub unit: &'a str,
    /// What the model says, if anything.
    pub predicted: Option<Prediction>,
    /// Decimals to show of the prediction.
    pub decimals: usize,
}

impl Pair<'_> {
    /// Predicted over published, less one; nothing where nothing is printed.
    pub fn error(&self) -> Option<f64> {
        let published = self.published.value().filter(|value| *value != 0.0)?;
        Some(self.predicted.as_ref()?.predicted / published - 1.0)
    }

    /// Whether the cell says how good the model is: measured, and predicted rather than repeated from the
    /// description, which has no interval.
    fn counts(&self) -> bool {
        let given = self.predicted.as_ref().is_none_or(|prediction| prediction.low == prediction.high);
        self.role == Some(Role::Measured) && !given
    }
}

/// Every cell of a table with its prediction.
pub fn pairs<'a>(table: &'a Table, model: &dyn TableModel) -> Vec<Pair<'a>> {
    let printed: Vec<Option<usize>> =
        (0..table.columns.len()).map(|column| decimals(table, column)).collect();
    let pair = |(row, column, published): (usize, usize, &'a guide::Cell)| {
        let predicted = table.rows.get(row).and_then(|of| match table.transfer(&of.name, column + 1) {
            // A guide that says what its cells ask for needs no model that knows its tables.
            Some(transfer) => model.cell(TRANSFER, transfer, 1),
            None => model.cell(&table.id, &of.name, column + 1),
        });
        let fitting = predicted.as_ref().map_or(0, |prediction| match prediction.predicted.abs() {
            1000.0.. => 0,
            100.0..1000.0 => 1,
            _ => 2,
        });
        Pair {
            row,
            column,
            published,
            role: table.role(row, column),
            unit: table.unit(row, column).unwrap_or_default(),
            predicted,
            decimals: printed.get(column).copied().flatten().unwrap_or(fitting),
        }
    };
    table.cells().map(pair).collect()
}

/// The most decimals printed in a column: trailing zeros are not printed everywhere.
fn decimals(table: &Table, column: usize) -> Option<usize> {
    let numbers = table.rows.iter().filter_map(|row| row.cells.get(column)?.number());
    numbers.map(|number| usize::from(number.decimals)).max()
}

/// How well measured cells are met.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Accuracy {
    /// Cells with a printed measurement and a prediction.
    pub cells: usize,
    /// Mean of the absolute relative errors.
    pub mean: f64,
    /// The largest of them.
    pub worst: f64,
    /// Cells with a prediction whose number is kept back.
    pub withheld: usize,
}

/// The accuracy over some cells.
pub fn accuracy<'a>(pairs: impl IntoIterator<Item = &'a Pair<'a>>) -> Accuracy {
    let mut accuracy = Accuracy::default();
    let mut sum = 0.0;
    for pair in pairs {
        if pair.predicted.is_some() && *pair.published == guide::Cell::Withheld {
            accuracy.withheld += 1;
        }
        if let Some(error) = pair.error().filter(|_| pair.counts()) {
            accuracy.cells += 1;
            sum += error.abs();
            accuracy.worst = accuracy.worst.max(error.abs());
        }
    }
    if accuracy.cells > 0 {
        accuracy.mean = sum / accuracy.cells as f64;
    }
    accuracy
}

/// `Table 21. Caption`, or `10gbe` with its section's words for a table without number.
pub fn title(table: &Table) -> String {
    match (table.id.bytes().all(|byte| byte.is_ascii_digit()), table.caption.is_empty()) {
        (true, _) => format!("Table {}. {}", table.id, table.caption),
        (false, true) => format!("Table {}", table.id),
        (false, false) => format!("Table {}. {}", table.id, table.caption),
    }
}

/// One line a cell: row, column, predicted with its interval, published, error.
pub fn grid(table: &Table, pairs: &[Pair<'_>]) -> Grid {
    let headers = ["row", "column", "unit", "predicted", "low", "high", "published", "error %"];
    let mut grid = Grid::new(format!("table-{}", table.id), title(table), &headers);
    for pair in pairs {
        let decimals = pair.decimals;
        let figure = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, decimals));
        let predicted = pair.predicted.as_ref();
        let published = match pair.published {
            guide::Cell::Number(number) => Cell::number(number.value, usize::from(number.decimals)),
            guide::Cell::Dash => Cell::Empty,
            other => Cell::text(other.to_string()),
        };
        grid.rows.push(vec![
            Cell::text(table.rows.get(pair.row).map_or("", |row| row.name.as_str())),
            Cell::text(heading(table, pair.column)),
            Cell::text(pair.unit),
            figure(predicted.map(|prediction| prediction.predicted)),
            figure(predicted.map(|prediction| prediction.low)),
            figure(predicted.map(|prediction| prediction.high)),
            published,
            pair.error().map_or(Cell::Empty, Cell::Percent),
        ]);
    }
    grid.notes.extend(summary(pairs));
    grid
}

/// The table as the guide lays it out.
pub fn compared(table: &Table, pairs: &[Pair<'_>]) -> Compared {
    let mut headers = vec![table.corner.clone()];
    headers.extend((0..table.columns.len()).map(|column| heading(table, column)));
    let mut rows: Vec<(String, Vec<Comparison>)> =
        table.rows.iter().map(|row| (row.name.clone(), Vec::new())).collect();
    for pair in pairs {
        let decimals = pair.decimals;
        let comparison = Comparison {
            predicted: pair
                .predicted
                .as_ref()
                .map(|prediction| format!("{:.decimals$}", prediction.predicted)),
            published: pair.published.to_string(),
            error: pair.error(),
            hint: pair.predicted.as_ref().map_or_else(String::new, |prediction| hint(prediction, decimals)),
        };
        if let Some((_, cells)) = rows.get_mut(pair.row) {
            cells.push(comparison);
        }
    }
    Compared {
        id: format!("table-{}", table.id),
        title: title(table),
        headers,
        rows,
        notes: summary(pairs).into_iter().collect(),
    }
}

/// The heading of a column with what sets it apart, without words that all columns share.
fn heading(table: &Table, column: usize) -> String {
    let Some(column) = table.columns.get(column) else { return String::new() };
    let own = column
        .heading
        .iter()
        .map(|words| words.replace(" Software Board-to-Board Mode Throughput Value", ""));
    own.collect::<Vec<_>>().join(" / ")
}

fn hint(prediction: &Prediction, decimals: usize) -> String {
    let interval = format!(
        "{:.decimals$} to {:.decimals$} {}",
        prediction.low,
        prediction.high,
        prediction.unit.symbol()
    );
    match prediction.bottlenecks.first() {
        Some(bottleneck) => format!("{interval}; {}: {}", bottleneck.name, bottleneck.explanation),
        None => interval,
    }
}

fn summary(pairs: &[Pair<'_>]) -> Option<String> {
    let accuracy = accuracy(pairs);
    let withheld = match accuracy.withheld {
        0 => String::new(),
        1 => "; 1 cell is withheld".to_owned(),
        count => format!("; {count} cells are withheld"),
    };
    if accuracy.cells == 0 {
        return (accuracy.withheld > 0).then(|| format!("No measured cell to compare with{withheld}."));
    }
    Some(format!(
        "{} measured cells: mean error {:.2} %, largest {:.2} %{withheld}.",
        accuracy.cells,
        accuracy.mean * 100.0,
        accuracy.worst * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::predict::Unit;

    const GUIDE: &str = include_str!("../../../../boards/guides/keystone2.toml");

    /// Says 100 for the second cell of each row and nothing else.
    struct Second;

    impl TableModel for Second {
        fn cell(&self, _: &str, _: &str, column: usize) -> Option<Prediction> {
            let rate = Prediction::rate(200.0, 100.0, 0.1, Unit::MegabitsPerSecond, Vec::new());
            (column == 2).then_some(rate)
        }
    }

    #[test]
    fn pairs_of_a_measured_table() {
        let guide = guide::load(GUIDE).unwrap();
        let table = guide.table("17").unwrap();
        let pairs = pairs(table, &Second);
        assert_eq!(pairs.len(), 66);
        let predicted: Vec<_> = pairs.iter().filter(|pair| pair.predicted.is_some()).collect();
        assert_eq!(predicted.len(), 11);
        assert!((predicted[0].error().unwrap() - (100.0 / 52.57 - 1.0)).abs() < 1e-12);
        let accuracy = accuracy(&pairs);
        assert_eq!((accuracy.cells, accuracy.withheld), (11, 0));
        let grid = grid(table, &pairs);
        assert_eq!(grid.rows.len(), 66);
        assert_eq!(grid.rows[1][6], Cell::number(52.57, 2));
        assert_eq!(grid.rows[0][3], Cell::Empty);
        let compared = compared(table, &pairs);
        assert_eq!(compared.rows.len(), 11);
        assert_eq!(compared.headers.len(), 7);
        assert_eq!(compared.rows[0].1[1].predicted.as_deref(), Some("100.00"));
    }

    #[test]
    fn withheld_cells_have_no_error() {
        let guide = guide::load(GUIDE).unwrap();
        let table = guide.table("18").unwrap();
        let pairs = pairs(table, &Second);
        assert!(pairs.iter().all(|pair| pair.error().is_none()));
        assert_eq!(accuracy(&pairs).withheld, 11);
        assert_eq!(grid(table, &pairs).rows[1][6], Cell::text("withheld"));
        assert_eq!(
            summary(&pairs).as_deref(),
            Some("No measured cell to compare with; 11 cells are withheld.")
        );
    }
}
