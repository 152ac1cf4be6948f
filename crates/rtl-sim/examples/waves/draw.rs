//! A [`Picture`] as SVG, in light and in dark.
//!
//! Drawn here, not by WaveDrom (yowasp-wavedrom 3.5 was tried): four of its signals take 50 kB, most of it a skin that is in every
//! picture, and its dark form inverts all colours, which here tell frames apart.

use crate::record::{PLAIN, Picture, Row, Sample, Span};
use std::fmt::Write as _;
use std::ops::Range;

/// Widths and heights in pixels.
const NAMES: usize = 168;
const COLUMN: usize = 24;
const HEAD: usize = 58;
const ROW: usize = 26;
const HIGH: usize = 16;
const SPAN: usize = 20;
const LINE: usize = 17;
/// Between two windows.
const BREAK: usize = 46;
/// How far an edge leans.
const SLOPE: usize = 3;

const STYLE: &str = "text{font:11px sans-serif;fill:#1b1f23}.t{font-size:15px;font-weight:bold}.n{font-family:monospace}\
.k{font-size:9px;text-anchor:middle;fill:#6a737d}.v{font-size:10px;text-anchor:middle}.vs{font-size:8px;text-anchor:middle}.c{fill:#4a5560;font-size:12px}\
.e{text-anchor:end}.p{fill:#fff}.g{stroke:#d9dde1;stroke-width:.7}.w{fill:none;stroke:#1b1f23;stroke-width:1.3}\
.i{stroke:#a9b1b9;stroke-width:1.3}.x{stroke:#005fb8;fill:none}.xt{fill:#005fb8}.h{stroke:#1b1f23;stroke-width:1}\
.s0{fill:#d3e5f8}.s1{fill:#fbdcc4}.s2{fill:#cdebdd}.s3{fill:#edd6ea}.sp{fill:#fff}\
@media (prefers-color-scheme:dark){text{fill:#e6e8ea}.k{fill:#98a1aa}.c{fill:#b3bac1}.p{fill:#14171a}.g{stroke:#343a41}\
.w,.h{stroke:#e6e8ea}.i{stroke:#5d666f}.x{stroke:#5aa9ff}.xt{fill:#5aa9ff}.s0{fill:#173a5e}.s1{fill:#5e3213}.s2{fill:#174a38}\
.s3{fill:#4c2747}.sp{fill:#14171a}}";

/// Where a clock's column is.
struct Columns<'a>(&'a [Range<usize>]);

impl Columns<'_> {
    /// The left edge of the clock; where it is not shown, the middle of the gap.
    fn left(&self, clock: usize) -> usize {
        let mut x = NAMES;
        for window in self.0 {
            if clock < window.start {
                return x - BREAK / 2;
            }
            if clock <= window.end {
                return x + (clock - window.start) * COLUMN;
            }
            x += window.len() * COLUMN + BREAK;
        }
        x - BREAK
    }

    fn middle(&self, clock: usize) -> usize {
        self.left(clock) + COLUMN / 2
    }

    /// The left edge of a window.
    fn window(&self, index: usize) -> usize {
        NAMES + self.0[..index].iter().map(|window| window.len() * COLUMN + BREAK).sum::<usize>()
    }
}

/// The picture.
///
/// # Errors
/// Something does not fit.
pub fn svg(picture: &Picture) -> Result<String, String> {
    let columns = Columns(&picture.windows);
    let last = picture.windows.last().ok_or("no clock is shown")?;
    let wide = picture.caption.iter().map(|line| 34 + line.len() * 6).max().unwrap_or(0);
    let width = (columns.left(last.end) + 16).max(wide);
    let waves = HEAD + (picture.rows.len() + 1) * ROW;
    let spans = waves + 4 + lanes(picture, width).iter().max().map_or(0, |lane| (lane + 1) * SPAN);
    let height = spans + picture.caption.len() * LINE + 14;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\
         <style>{STYLE}</style><rect class=\"p\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"t\" x=\"16\" y=\"24\">{title}</text>\n",
        title = escaped(&picture.title),
    );
    grid(&mut out, &columns, waves);
    for (index, row) in picture.rows.iter().enumerate() {
        let y = HEAD + (index + 1) * ROW;
        text(&mut out, "n", 16, y + HIGH - 4, &row.name);
        for window in &picture.windows {
            wave(&mut out, &columns, row, window.clone(), y)?;
        }
    }
    breaks(&mut out, &columns, waves);
    measures(&mut out, &columns, picture, (width, waves));
    for (index, line) in picture.caption.iter().enumerate() {
        text(&mut out, "c", 16, spans + 12 + index * LINE, line);
    }
    out.push_str("</svg>\n");
    Ok(out)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn text(out: &mut String, class: &str, x: usize, y: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
}

/// The clock, its numbers, and a line at each rising edge.
fn grid(out: &mut String, columns: &Columns<'_>, bottom: usize) {
    text(out, "n", 16, HEAD + HIGH - 4, "clk");
    let mut lines = String::new();
    for (index, window) in columns.0.iter().enumerate() {
        let mut path = format!("M{} {}", columns.window(index), HEAD + HIGH);
        for clock in window.clone() {
            let x = columns.window(index) + (clock - window.start) * COLUMN;
            let _ = write!(path, "V{HEAD}H{}V{}H{}", x + COLUMN / 2, HEAD + HIGH, x + COLUMN);
            let _ = write!(lines, "M{x} {}V{bottom}", HEAD + HIGH + 4);
            if clock % 2 == 0 {
                text(out, "k", x + COLUMN / 2, HEAD - 8, &clock.to_string());
            }
        }
        let _ = writeln!(out, "<path class=\"w\" d=\"{path}\"/>");
    }
    let _ = writeln!(out, "<path class=\"g\" d=\"{lines}\"/>");
}

/// A row in a window of clocks; `y` is where it is high.
fn wave(
    out: &mut String,
    columns: &Columns<'_>,
    row: &Row,
    window: Range<usize>,
    y: usize,
) -> Result<(), String> {
    let (middle, low) = (y + HIGH / 2, y + HIGH);
    let mut path = String::new();
    let mut clock = window.start;
    while clock < window.end {
        let sample = row.samples.get(clock).ok_or("a clock that was not recorded")?;
        let same = (clock..window.end).take_while(|at| row.samples.get(*at) == Some(sample)).count();
        let (from, to) =
            (columns.left(clock), columns.left(window.start) + (clock + same - window.start) * COLUMN);
        match sample {
            Sample::Bit(level) => {
                let level = if *level { y } else { low };
                let _ = match path.as_str() {
                    "" => write!(path, "M{from} {level}H{to}"),
                    _ => write!(path, "L{} {level}H{to}", from + SLOPE),
                };
            }
            Sample::Idle => {
                let _ = writeln!(out, "<path class=\"i\" d=\"M{from} {middle}H{to}\"/>");
            }
            Sample::Value { text: value, shade } => {
                // A character takes six pixels, or five where the letters are small.
                let (room, chars) = (to - from - 2 * SLOPE, value.chars().count());
                if 5 * chars > room + 4 {
                    return Err(format!("{value:?} of {} does not fit into {same} clocks", row.name));
                }
                let size = if 6 * chars > room { "vs" } else { "v" };
                let class = if *shade == PLAIN { "sp".to_owned() } else { format!("s{}", shade % 4) };
                let (left, right) = (from + SLOPE, to - SLOPE);
                let _ = writeln!(
                    out,
                    "<path class=\"h {class}\" d=\"M{from} {middle}L{left} {y}H{right}L{to} {middle}L{right} {low}H{left}z\"/>"
                );
                text(out, size, (from + to) / 2, y + 12, value);
            }
        }
        clock += same;
    }
    if !path.is_empty() {
        let _ = writeln!(out, "<path class=\"w\" d=\"{path}\"/>");
    }
    Ok(())
}

/// The gaps between windows, with the number of clocks that are left out.
fn breaks(out: &mut String, columns: &Columns<'_>, bottom: usize) {
    for (index, pair) in columns.0.windows(2).enumerate() {
        let middle = columns.window(index + 1) - BREAK / 2;
        for x in [middle - 3, middle + 3] {
            let _ = writeln!(out, "<path class=\"i\" d=\"M{} {bottom}L{} {HEAD}\"/>", x - 3, x + 3);
        }
        text(out, "k", middle, HEAD - 8, &format!("+{}", pair[1].start - pair[0].end));
    }
}

/// Where a span's label begins, and whether that is to the left of the span, as there is no room to its right.
fn label_at(columns: &Columns<'_>, span: &Span, width: usize) -> (usize, bool) {
    let (from, to, long) = (columns.middle(span.from), columns.middle(span.to), span.label().len() * 6);
    if to + 8 + long < width { (to + 8, false) } else { (from.saturating_sub(8 + long), true) }
}

/// In which line below the waves each span lies: those that do not overlap share one.
fn lanes(picture: &Picture, width: usize) -> Vec<usize> {
    let columns = Columns(&picture.windows);
    let mut taken: Vec<Vec<Range<usize>>> = Vec::new();
    let mut lanes = Vec::new();
    for span in &picture.spans {
        let (label, is_left) = label_at(&columns, span, width);
        let (from, to) = (columns.middle(span.from), columns.middle(span.to));
        let range = if is_left { label..to } else { from..label + span.label().len() * 6 };
        let is_free = |taken: &[Range<usize>]| {
            taken.iter().all(|other| other.end + 8 < range.start || range.end + 8 < other.start)
        };
        let lane = taken.iter().position(|taken| is_free(taken)).unwrap_or(taken.len());
        if lane == taken.len() {
            taken.push(Vec::new());
        }
        taken[lane].push(range);
        lanes.push(lane);
    }
    lanes
}

fn measures(out: &mut String, columns: &Columns<'_>, picture: &Picture, (width, top): (usize, usize)) {
    for (span, lane) in picture.spans.iter().zip(lanes(picture, width)) {
        let (from, to, y) = (columns.middle(span.from), columns.middle(span.to), top + 10 + lane * SPAN);
        let _ = writeln!(
            out,
            "<path class=\"x\" d=\"M{from} {a}V{b}M{to} {a}V{b}M{from} {y}H{to}M{r} {c}L{from} {y}L{r} {d}M{l} {c}L{to} {y}L{l} {d}\"/>",
            a = y - 6,
            b = y + 6,
            c = y - 3,
            d = y + 3,
            l = to - 4,
            r = from + 4,
        );
        let (label, is_left) = label_at(columns, span, width);
        match is_left {
            true => text(out, "xt e", from - 8, y + 4, &span.label()),
            false => text(out, "xt", label, y + 4, &span.label()),
        }
    }
}
