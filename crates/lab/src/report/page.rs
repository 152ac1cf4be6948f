//! One HTML page that needs nothing but itself: sections with text, tables and figures, a contents list, light and
//! dark colours.

use super::grid::{Cell, Grid, percent};
pub use super::html::{STYLE, escape};
use super::plot::{Figure, Mark, PlotError, SERIES, Series};
use std::fmt::Write as _;

/// A part of the page with an entry in the contents list.
#[derive(Clone, Debug)]
pub struct Section {
    /// Anchor.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What it holds, in order.
    pub blocks: Vec<Block>,
}

/// A block of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph of plain text.
    Text(String),
    /// Figures in a row: a large value and what it is.
    Tiles(Vec<(String, String)>),
    /// A table.
    Grid(Grid),
    /// A table as a guide lays it out, a prediction in each cell.
    Compared(Compared),
    /// A figure.
    Figure(Figure),
    /// A picture that was drawn elsewhere: an SVG element in the colours of [`super::plot`].
    Picture {
        /// Anchor.
        id: String,
        /// Caption.
        title: String,
        /// The element. It is written as it is.
        svg: String,
        /// What its colours mean, with their numbers in [`super::plot::SERIES`].
        key: Vec<(String, usize)>,
        /// Sentences below the picture.
        notes: Vec<String>,
    },
    /// A figure that shows no numbers, in words.
    Described {
        /// Anchor.
        id: String,
        /// Caption.
        title: String,
        /// What it shows.
        text: String,
    },
    /// A list of statements with a label.
    Findings(Vec<Finding>),
}

/// A table of predictions in the layout of a published one.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Anchor, such as `table-21`.
    pub id: String,
    /// Caption.
    pub title: String,
    /// Headers.
    pub headers: Vec<String>,
    /// Rows: the first cell as printed, then the cells.
    pub rows: Vec<(String, Vec<Comparison>)>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

/// A cell of a compared table.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The prediction, or nothing where the model has none.
    pub predicted: Option<String>,
    /// What is printed.
    pub published: String,
    /// Relative error, 0.01 for one per cent.
    pub error: Option<f64>,
    /// Shown when pointed at: the interval and the bottleneck.
    pub hint: String,
}

/// A statement with a label.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How grave it is: `error`, `warning` or `note`; the page colours it.
    pub grade: &'static str,
    /// Short label, such as the rule's name.
    pub label: String,
    /// Where.
    pub place: String,
    /// What is said.
    pub text: String,
    /// The arithmetic.
    pub evidence: String,
}

/// The page.
pub fn page(title: &str, lead: &str, sections: &[Section]) -> Result<String, PlotError> {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}{}</style>\n</head>\n<body>\n<header><h1>{title}</h1><p>{}</p></header>\n\
         <nav aria-label=\"Contents\"><h2>Contents</h2>\n<ul>\n",
        series_style(),
        escape(lead),
        title = escape(title),
    );
    for section in sections {
        let _ = write!(html, "<li><a href=\"#{}\">{}</a>", escape(&section.id), escape(&section.title));
        let entries: Vec<(&str, &str)> = section.blocks.iter().filter_map(Block::entry).collect();
        if entries.len() > 1 {
            html.push_str("<ul>");
            for (id, title) in entries {
                let _ = write!(html, "<li><a href=\"#{}\">{}</a></li>", escape(id), escape(title));
            }
            html.push_str("</ul>");
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ul></nav>\n<main>\n");
    for section in sections {
        let (id, title) = (escape(&section.id), escape(&section.title));
        let _ = writeln!(html, "<section id=\"{id}\"><h2>{title}</h2>");
        for block in &section.blocks {
            block.write(&mut html)?;
        }
        html.push_str("</section>\n");
    }
    html.push_str("</main>\n</body>\n</html>\n");
    Ok(html)
}

/// Maps each colour of a picture to a variable of the style sheet, for filled and stroked parts.
fn series_style() -> String {
    let mut style = String::new();
    for (number, colour) in SERIES.iter().enumerate() {
        let hex = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        let _ = writeln!(
            style,
            ".figure svg [fill=\"{hex}\"]{{fill:var(--s{number})}}.figure svg [stroke=\"{hex}\"]{{stroke:var(--s{number})}}"
        );
    }
    style
}

impl Block {
    /// Anchor and title if the block is one that is looked for.
    fn entry(&self) -> Option<(&str, &str)> {
        match self {
            Block::Grid(grid) => Some((&grid.id, &grid.title)),
            Block::Compared(table) => Some((&table.id, &table.title)),
            Block::Figure(figure) => Some((&figure.id, &figure.title)),
            Block::Picture { id, title, .. } | Block::Described { id, title, .. } => Some((id, title)),
            Block::Text(_) | Block::Tiles(_) | Block::Findings(_) => None,
        }
    }

    fn write(&self, html: &mut String) -> Result<(), PlotError> {
        match self {
            Block::Text(text) => {
                let _ = writeln!(html, "<p>{}</p>", escape(text));
            }
            Block::Tiles(tiles) => {
                html.push_str("<div class=\"tiles\">");
                for (value, name) in tiles {
                    let _ = write!(html, "<div><b>{}</b><span>{}</span></div>", escape(value), escape(name));
                }
                html.push_str("</div>\n");
            }
            Block::Grid(grid) => write_grid(html, grid),
            Block::Compared(table) => write_compared(html, table),
            Block::Figure(figure) => write_figure(html, figure)?,
            Block::Picture { id, title, svg, key, notes } => {
                let _ = write!(html, "<figure class=\"figure\" id=\"{}\">{svg}", escape(id));
                write_key(html, key.iter().map(|(name, colour)| ("line", *colour, name.as_str())));
                let _ = write!(html, "<figcaption>{}</figcaption>", escape(title));
                write_notes(html, notes);
                html.push_str("</figure>\n");
            }
            Block::Described { id, title, text } => {
                let (id, title, text) = (escape(id), escape(title), escape(text));
                let _ = writeln!(
                    html,
                    "<figure class=\"figure\" id=\"{id}\"><figcaption>{title}</figcaption><p class=\"note\">{text}</p></figure>"
                );
            }
            Block::Findings(findings) => write_findings(html, findings),
        }
        Ok(())
    }
}

fn open(html: &mut String, id: &str, title: &str, headers: &[String], numeric: impl Fn(usize) -> bool) {
    let _ = write!(
        html,
        "<div class=\"table\" id=\"{0}\"><p class=\"caption\" id=\"{0}-caption\">{1}</p><div class=\"wide\">\
         <table aria-labelledby=\"{0}-caption\"><thead><tr>",
        escape(id),
        escape(title)
    );
    for (column, header) in headers.iter().enumerate() {
        let class = if numeric(column) { " class=\"n\"" } else { "" };
        let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escape(header));
    }
    html.push_str("</tr></thead><tbody>\n");
}

fn close(html: &mut String, notes: &[String]) {
    html.push_str("</tbody></table></div>");
    write_notes(html, notes);
    html.push_str("</div>\n");
}

fn write_notes(html: &mut String, notes: &[String]) {
    for note in notes {
        let _ = write!(html, "<p class=\"note\">{}</p>", escape(note));
    }
}

/// Columns with longer texts are kept wide enough to be read, and scroll on a narrow screen.
const LONG: usize = 28;

fn write_grid(html: &mut String, grid: &Grid) {
    open(html, &grid.id, &grid.title, &grid.headers, |column| grid.is_numeric(column));
    let classes: Vec<&str> = (0..grid.headers.len())
        .map(|column| {
            let long = |row: &Vec<Cell>| row.get(column).is_some_and(|cell| cell.shown().len() > LONG);
            match grid.is_numeric(column) {
                true => " class=\"n\"",
                false if grid.rows.iter().any(long) => " class=\"w\"",
                false => "",
            }
        })
        .collect();
    for row in &grid.rows {
        html.push_str("<tr>");
        for (column, class) in classes.iter().enumerate() {
            let cell = row.get(column).unwrap_or(&Cell::Empty);
            let _ = write!(html, "<td{class}>{}</td>", escape(&cell.shown()));
        }
        html.push_str("</tr>\n");
    }
    close(html, &grid.notes);
}

fn write_compared(html: &mut String, table: &Compared) {
    open(html, &table.id, &table.title, &table.headers, |column| column > 0);
    for (name, cells) in &table.rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(name));
        for cell in cells {
            let Some(predicted) = &cell.predicted else {
                let _ = write!(html, "<td class=\"n\"><small>{}</small></td>", escape(&cell.published));
                continue;
            };
            let _ =
                write!(html, "<td class=\"n\" title=\"{}\"><b>{}</b>", escape(&cell.hint), escape(predicted));
            let _ = write!(html, "<small>{}", escape(&cell.published));
            if let Some(error) = cell.error {
                let grade = match error.abs() {
                    ..=0.01 => "good",
                    ..=0.05 => "fair",
                    _ => "poor",
                };
                let _ = write!(html, " <i class=\"{grade}\">{}</i>", percent(error));
            }
            html.push_str("</small></td>");
        }
        html.push_str("</tr>\n");
    }
    close(html, &table.notes);
}

fn write_figure(html: &mut String, figure: &Figure) -> Result<(), PlotError> {
    let _ = write!(html, "<figure class=\"figure\" id=\"{}\">", escape(&figure.id));
    html.push_str(&figure.svg()?);
    let shown = figure.series.iter().filter(|series| !is_repeated(figure, series)).map(|series| {
        let class = match series.mark {
            Mark::Predicted => "line",
            Mark::Published => "dot",
        };
        (class, series.colour, series.name.as_str())
    });
    write_key(html, shown);
    let _ = write!(html, "<figcaption>{}</figcaption>", escape(&figure.title));
    write_notes(html, &figure.notes);
    html.push_str("</figure>\n");
    Ok(())
}

/// What the colours of a picture mean, each as a line or a dot.
fn write_key<'a>(html: &mut String, parts: impl Iterator<Item = (&'static str, usize, &'a str)>) {
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return;
    }
    html.push_str("<div class=\"key\">");
    for (class, colour, name) in parts {
        let colour = colour % SERIES.len();
        let _ = write!(
            html,
            "<span><i class=\"{class}\" style=\"--c:var(--s{colour})\"></i>{}</span>",
            escape(name)
        );
    }
    html.push_str("</div>");
}

/// Whether the key has the series already: published dots have the colour of the curve or bar that they belong to.
fn is_repeated(figure: &Figure, series: &Series) -> bool {
    let curve = |other: &Series| other.mark == Mark::Predicted && other.colour == series.colour;
    series.mark == Mark::Published && figure.series.iter().any(curve)
}

fn write_findings(html: &mut String, findings: &[Finding]) {
    html.push_str("<ol class=\"findings\">\n");
    for finding in findings {
        let _ = write!(
            html,
            "<li><i class=\"{}\">{0}</i> <b>{}</b> <span>{}</span><p>{}</p>",
            escape(finding.grade),
            escape(&finding.label),
            escape(&finding.place),
            escape(&finding.text)
        );
        if !finding.evidence.is_empty() {
            let _ = write!(html, "<code>{}</code>", escape(&finding.evidence));
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ol>\n");
}

#[cfg(test)]
mod tests {
    use super::super::plot::Axis;
    use super::*;

    fn sample() -> Vec<Section> {
        let mut grid = Grid::new("table-1", "One <table>", &["name", "value"]);
        grid.rows.push(vec![Cell::text("a & b"), Cell::number(1.0, 1)]);
        let cell = |predicted: Option<&str>, error| Comparison {
            predicted: predicted.map(str::to_owned),
            published: "100".to_owned(),
            error,
            hint: "90 to 110; link".to_owned(),
        };
        let compared = Compared {
            id: "table-2".to_owned(),
            title: "Two".to_owned(),
            headers: vec!["row".to_owned(), "x".to_owned(), "y".to_owned()],
            rows: vec![("8".to_owned(), vec![cell(Some("101"), Some(0.01)), cell(None, None)])],
            notes: vec!["a note".to_owned()],
        };
        let series = Series {
            name: "curve".to_owned(),
            mark: Mark::Predicted,
            colour: 9,
            points: vec![(0.0, 1.0), (1.0, 2.0)],
        };
        let figure = Figure {
            id: "figure-1".to_owned(),
            title: "A figure".to_owned(),
            x: "x".to_owned(),
            y: "y".to_owned(),
            axis: Axis::Linear,
            series: vec![series],
            notes: Vec::new(),
        };
        let finding = Finding {
            grade: "error",
            label: "quotient".to_owned(),
            place: "table 11".to_owned(),
            text: "is not".to_owned(),
            evidence: "4341 / 6400 = 67.8 %".to_owned(),
        };
        vec![Section {
            id: "all".to_owned(),
            title: "All & more".to_owned(),
            blocks: vec![
                Block::Text("text".to_owned()),
                Block::Tiles(vec![("1 %".to_owned(), "error".to_owned())]),
                Block::Grid(grid),
                Block::Compared(compared),
                Block::Figure(figure),
                Block::Findings(vec![finding]),
            ],
        }]
    }

    #[test]
    fn holds_everything_once_and_needs_nothing_else() {
        let html = page("A \"page\"", "lead", &sample()).unwrap();
        for part in [
            "<title>A &quot;page&quot;</title>",
            "<a href=\"#table-1\">One &lt;table&gt;</a>",
            "<td>a &amp; b</td><td class=\"n\">1.0</td>",
            "<b>101</b><small>100 <i class=\"good\">+1.0 %</i></small>",
            "title=\"90 to 110; link\"",
            "<td class=\"n\"><small>100</small></td>",
            "id=\"figure-1\"",
            "4341 / 6400 = 67.8 %",
            "<i class=\"error\">error</i> <b>quotient</b>",
            "var(--s1)",
        ] {
            assert_eq!(html.matches(part).count().min(1), 1, "{part} in\n{html}");
        }
        for outside in ["http", "<script", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_figure_without_points_is_an_error() {
        let mut sections = sample();
        for block in &mut sections[0].blocks {
            if let Block::Figure(figure) = block {
                figure.series.clear();
            }
        }
        assert_eq!(page("t", "l", &sections), Err(PlotError::Empty));
    }
}
