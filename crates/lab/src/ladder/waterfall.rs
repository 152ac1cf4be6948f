//! The ladder as a picture: a bar from what a rung began with to what it reached, a line where that was predicted, dots for
//! what the document prints.

use super::climb::{Climb, Row};
use super::state::Direction;
use crate::report::plot::{FAINT, INK, LETTER, SERIES, TEXT, WIDTH};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::fmt::Write as _;

/// Height of a rung.
const ROW: u32 = 66;
/// Height of the scale at the bottom and of the key at the top.
const SCALE: u32 = 28;
const KEY: u32 = 56;
/// Most letters of a rung's title: it is cut where the picture ends.
const LETTERS: usize = (WIDTH / LETTER) as usize - 3;
/// Where bars begin and end.
const LEFT: f64 = 8.0;
const RIGHT: f64 = 552.0;
/// Colours of the bars and dots.
const GAINED: RGBColor = SERIES[0];
const LOST: RGBColor = SERIES[6];
const PUBLISHED: RGBColor = SERIES[1];
/// A rung that changes less than this part has no bar of its own.
const SAME: f64 = 0.005;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// Draws one direction of a place; `None` where it has no rung with a figure.
pub fn svg(climb: &Climb, direction: Direction) -> Option<String> {
    let rows: Vec<&Row> =
        climb.rows.iter().filter(|row| row.direction == direction && row.measured.is_some()).collect();
    if rows.is_empty() {
        return None;
    }
    let mut svg = String::new();
    let height = KEY + ROW * rows.len() as u32 + SCALE;
    draw(climb, &rows, height, &mut svg).ok()?;
    let way = match direction {
        Direction::Sending => "the server sends",
        Direction::Receiving => "the server receives",
    };
    let head = format!(
        "<svg role=\"img\" aria-label=\"{}: {way}\" viewBox=\"0 0 {WIDTH} {height}\">",
        crate::report::page::escape(&climb.title)
    );
    let (_, rest) = svg.split_once('>')?;
    Some(head + rest)
}

/// The same as a file of its own, with paper and with colours for light and dark.
pub fn standalone(svg: &str) -> String {
    let hex = |colour: RGBColor| format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
    let mut style = format!("text{{font-family:sans-serif;fill:{}}}.paper{{fill:#fff}}", hex(INK));
    style.push_str("@media (prefers-color-scheme:dark){.paper{fill:#14171a}text{fill:#e6e8ea}");
    let dark = [
        (INK, "#e6e8ea"),
        (FAINT, "#343a41"),
        (GAINED, "#5aa9ff"),
        (PUBLISHED, "#ff9350"),
        (LOST, "#ff7088"),
    ];
    for (light, dark) in dark {
        let light = hex(light);
        // Writing into a string never fails.
        let _ = write!(style, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    style.push('}');
    let paper = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>";
    let svg = svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    svg.replacen('>', &format!("><style>{style}</style>{paper}"), 1)
}

fn draw(climb: &Climb, rows: &[&Row], height: u32, svg: &mut String) -> Drawn {
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    let most = rows.iter().flat_map(|row| figures(row)).fold(1.0, f64::max);
    let top = (most / 20.0).ceil() * 20.0;
    let x = |megabytes: f64| (LEFT + (RIGHT - LEFT) * megabytes / top).round() as i32;
    let bottom = (height - SCALE) as i32;
    let steps = if top > 200.0 { 5.0 } else { (top / 20.0).min(7.0) };
    for step in 0..=steps as u32 {
        let value = (top / steps * f64::from(step)).round();
        let at = x(value);
        line(&root, (at, KEY as i32), (at, bottom), FAINT, 1)?;
        let anchor = if step == 0 { at } else { at - 26 };
        text(&root, &format!("{value:.0}"), (anchor.max(2), bottom + 6))?;
    }
    key(&root)?;
    for (number, row) in rows.iter().enumerate() {
        let y = (KEY + ROW * number as u32) as i32;
        one(&root, climb, row, y, &x)?;
    }
    root.present()?;
    Ok(())
}

/// Everything that a row shows, in MB/s.
fn figures(row: &Row) -> Vec<f64> {
    let measured = row.measured.iter().map(|found| found.megabytes.median);
    let predicted = row.predicted.iter().map(|expected| expected.megabytes);
    measured.chain(predicted).chain(row.published.iter().map(|printed| printed.megabytes)).collect()
}

fn key(root: &Area<'_>) -> Drawn {
    let y = 13;
    root.draw(&Rectangle::new([(8, y - 6), (24, y + 6)], GAINED.filled()))?;
    text(root, "gained", (32, y - 7))?;
    root.draw(&Rectangle::new([(104, y - 6), (120, y + 6)], LOST.filled()))?;
    text(root, "lost, against the rung before", (128, y - 7))?;
    text(root, "payload, MB/s", (452, y - 7))?;
    let y = y + 24;
    line(root, (16, y - 8), (16, y + 8), INK, 2)?;
    text(root, "predicted", (32, y - 7))?;
    root.draw(&Circle::new((112, y), 5, PUBLISHED.filled()))?;
    text(root, "published", (128, y - 7))
}

fn one(root: &Area<'_>, climb: &Climb, row: &Row, y: i32, x: &impl Fn(f64) -> i32) -> Drawn {
    let Some(found) = &row.measured else { return Ok(()) };
    let reached = found.megabytes.median;
    let before = climb.before(row).and_then(|before| before.measured.as_ref());
    let began = before.map_or(0.0, |found| found.megabytes.median);
    let (mut low, high) = (began.min(reached), began.max(reached));
    if high - low < SAME * high {
        low = high;
    }
    let mut figures = format!("{reached:.1}");
    if let Some(expected) = &row.predicted {
        let _ = write!(figures, " ({:.1})", expected.megabytes);
    }
    text(root, &row.rung, (8, y + 2))?;
    text(root, &figures, (200, y + 2))?;
    text(root, &row.title.chars().take(LETTERS).collect::<String>(), (8, y + 20))?;
    let (top, bottom) = (y + 39, y + 53);
    root.draw(&Rectangle::new([(x(0.0), top), (x(low), bottom)], FAINT.filled()))?;
    let colour = if reached < began { LOST } else { GAINED };
    if high > low {
        root.draw(&Rectangle::new([(x(low), top), (x(high), bottom)], colour.filled()))?;
    } else {
        line(root, (x(high), top), (x(high), bottom), GAINED, 3)?;
    }
    if let Some(expected) = &row.predicted {
        line(root, (x(expected.megabytes), top - 3), (x(expected.megabytes), bottom + 3), INK, 2)?;
    }
    if let Some((least, most)) = row.printed_range() {
        let middle = i32::midpoint(top, bottom);
        line(root, (x(least), middle), (x(most), middle), PUBLISHED, 2)?;
        for value in [least, most] {
            root.draw(&Circle::new((x(value), middle), 4, PUBLISHED.filled()))?;
        }
    }
    Ok(())
}

fn line(root: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor, width: u32) -> Drawn {
    root.draw(&PathElement::new([from, to], colour.stroke_width(width)))?;
    Ok(())
}

fn text(root: &Area<'_>, words: &str, at: (i32, i32)) -> Drawn {
    root.draw(&Text::new(words.to_owned(), at, ("sans-serif", TEXT).into_font().color(&INK)))?;
    Ok(())
}
