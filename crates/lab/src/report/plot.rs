//! A figure as data (curves and points over two axes, or groups of bars) and its picture in SVG.

use super::page::escape;
use plotters::coord::ranged1d::{AsRangedCoord, KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// Width of a picture in pixels, which the page scales: narrow enough that a phone shows it whole and its text can be read.
pub(crate) const WIDTH: u32 = 560;
/// Height of a picture in pixels.
const HEIGHT: u32 = 350;
/// Size of the text in pictures, in the drawing library's unit: 1.24 of them are a pixel.
pub(crate) const TEXT: u32 = 16;
/// Width of a letter of it in pixels, about.
pub(crate) const LETTER: u32 = 7;
/// Height of a line of it in pixels.
const LINE: i32 = 17;

/// Colours of the picture's parts. The page's style sheet maps each to a colour of its light or dark theme, so these
/// are names as much as values.
/// Text and axes.
pub const INK: RGBColor = RGBColor(0x1B, 0x1F, 0x23);
/// Grid lines.
pub const FAINT: RGBColor = RGBColor(0xD9, 0xDD, 0xE1);
/// Colours of series, told apart with the common forms of colour blindness too.
pub const SERIES: [RGBColor; 8] = [
    RGBColor(0x00, 0x5F, 0xB8),
    RGBColor(0xC6, 0x4B, 0x00),
    RGBColor(0x00, 0x80, 0x5A),
    RGBColor(0x9A, 0x36, 0x8C),
    RGBColor(0x8C, 0x6D, 0x00),
    RGBColor(0x00, 0x8B, 0x9E),
    RGBColor(0xB8, 0x1F, 0x3A),
    RGBColor(0x5B, 0x5B, 0x9E),
];

/// The same on a dark ground.
pub(crate) const DARK: [&str; 8] =
    ["#5aa9ff", "#ff9350", "#3fd0a0", "#dd86d2", "#d9b640", "#45cfe2", "#ff7088", "#a9a9f0"];

/// A colour as SVG writes it.
pub fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// The style sheet of a picture that stands alone: text, paper, and what the colours are on a dark ground.
pub fn style() -> String {
    let mut style =
        format!("text{{font-family:sans-serif;font-size:12px;fill:{}}}.paper{{fill:#fff}}", hex(INK));
    style.push_str("@media (prefers-color-scheme:dark){.paper{fill:#14171a}text{fill:#e6e8ea}");
    for (light, dark) in
        [(INK, "#e6e8ea"), (FAINT, "#343a41")].into_iter().chain(SERIES.into_iter().zip(DARK))
    {
        let light = hex(light);
        let _ = write!(style, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    style.push('}');
    style
}

/// How numbers lie on the horizontal axis.
#[derive(Clone, PartialEq, Debug)]
pub enum Axis {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios, with ticks at powers of two.
    PowersOfTwo,
    /// Names at 0, 1, 2, …: the figure is drawn as bars.
    Categories(Vec<String>),
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// What the model says: a line, or bars over categories.
    Predicted,
    /// What the guide prints: dots.
    Published,
}

/// One series.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the key.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Which of [`SERIES`] it takes; a curve and its published points share one.
    pub colour: usize,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Name to refer to it by, such as `figure-8`.
    pub id: String,
    /// Caption.
    pub title: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its unit.
    pub y: String,
    /// How x is laid out.
    pub axis: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Sentences below the picture.
    pub notes: Vec<String>,
}

/// A figure that cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlotError {
    /// No series has a point.
    Empty,
    /// A point is not finite, or not positive where the axis is logarithmic.
    Point,
    /// The drawing library refused.
    Drawing(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlotError::Empty => write!(f, "the figure has no points"),
            PlotError::Point => write!(f, "a point lies outside what its axis can show"),
            PlotError::Drawing(why) => write!(f, "the figure cannot be drawn: {why}"),
        }
    }
}

impl std::error::Error for PlotError {}

impl Figure {
    /// The picture: an SVG element without links, to stand in a page.
    pub fn svg(&self) -> Result<String, PlotError> {
        let xs = || self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let ys = || self.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let logarithmic = self.axis == Axis::PowersOfTwo;
        if xs().next().is_none() {
            return Err(PlotError::Empty);
        }
        if xs().any(|x| !x.is_finite() || (logarithmic && x <= 0.0)) || ys().any(|y| !y.is_finite()) {
            return Err(PlotError::Point);
        }
        let top = round_up(ys().fold(0.0, f64::max) * 1.02);
        let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        let mut svg = String::new();
        let drawn = match &self.axis {
            Axis::Linear => {
                let room = if high > low { (high - low) * 0.03 } else { 1.0 };
                self.draw(&mut svg, low - room..high + room, top, 7)
            }
            Axis::PowersOfTwo => {
                let range = low.log2() - 0.2..high.log2() + 0.2;
                self.draw(&mut svg, Powers(range), top, 32)
            }
            Axis::Categories(names) => {
                let last = names.len().max(1) as f64;
                self.draw(&mut svg, Names { range: -0.5..last - 0.5 }, top, names.len().max(2))
            }
        };
        drawn.map_err(|error| PlotError::Drawing(error.to_string()))?;
        Ok(accessible(&svg, &self.title))
    }

    /// The same as a file of its own: with paper, colours for light and dark, and the names of the series below.
    pub fn standalone(&self) -> Result<String, PlotError> {
        let svg = self.svg()?;
        let mut height = HEIGHT + 34;
        let mut below = format!(
            "<text x=\"16\" y=\"{}\" font-weight=\"bold\">{}</text>",
            HEIGHT + 20,
            escape(&self.title)
        );
        for series in &self.series {
            let colour = SERIES.get(series.colour % SERIES.len()).copied().unwrap_or(INK);
            let y = height + 10;
            let _ = write!(
                below,
                "<rect x=\"16\" y=\"{}\" width=\"18\" height=\"4\" fill=\"{}\"/><text x=\"42\" y=\"{y}\">{}</text>",
                y - 6,
                hex(colour),
                escape(&series.name)
            );
            height += 22;
        }
        let open =
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" ", height + 8);
        let svg =
            svg.replacen(&format!(" viewBox=\"0 0 {WIDTH} {HEIGHT}\""), "", 1).replacen("<svg ", &open, 1);
        let head = format!(
            "<style>{}</style><rect class=\"paper\" width=\"{WIDTH}\" height=\"{}\"/>",
            style(),
            height + 8
        );
        let svg = svg.replacen('>', &format!(">{head}"), 1);
        Ok(svg.replacen("</svg>", &format!("{below}</svg>"), 1))
    }

    fn draw<X>(
        &self,
        svg: &mut String,
        x: impl AsRangedCoord<CoordDescType = X, Value = f64>,
        top: f64,
        labels: usize,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .x_label_area_size(30 + LINE as u32 * self.lines() as u32)
            .y_label_area_size(70)
            .build_cartesian_2d(x, 0.0..top)?;
        let text = ("sans-serif", TEXT).into_font().color(&INK);
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .x_labels(labels)
            .y_labels(6)
            .y_label_formatter(&|y| shown(*y))
            .x_desc(self.x.as_str())
            .y_desc(self.y.as_str());
        let whole = |x: &f64| shown(*x);
        if self.axis == Axis::Linear {
            mesh.x_label_formatter(&whole);
        } else {
            mesh.disable_x_mesh();
        }
        mesh.draw()?;
        let middle = text.pos(Pos::new(HPos::Center, VPos::Top));
        for (number, name) in self.names().iter().enumerate() {
            let (x, y) = chart.backend_coord(&(number as f64, 0.0));
            for (line, words) in broken(name, self.letters()).into_iter().enumerate() {
                root.draw(&Text::new(words.to_owned(), (x, y + 8 + LINE * line as i32), middle.clone()))?;
            }
        }
        for series in &self.series {
            let colour = SERIES[series.colour % SERIES.len()];
            match self.layout(series) {
                Shape::Line(points) => {
                    chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
                }
                Shape::Dots(points) => {
                    let dots = points.into_iter().map(|point| Circle::new(point, 4, colour.filled()));
                    chart.draw_series(dots)?;
                }
                Shape::Bars(corners) => {
                    let bars = corners.into_iter();
                    chart.draw_series(bars.map(|bar| Rectangle::new(bar, colour.mix(0.55).filled())))?;
                }
            }
        }
        root.present()?;
        Ok(())
    }

    fn names(&self) -> &[String] {
        match &self.axis {
            Axis::Categories(names) => names,
            Axis::Linear | Axis::PowersOfTwo => &[],
        }
    }

    /// Letters for which there is room below a place of the axis, if they are capital ones.
    fn letters(&self) -> usize {
        ((WIDTH - 90) / (LETTER + 2)) as usize / self.names().len().max(1)
    }

    /// Lines of the names below the axis.
    fn lines(&self) -> usize {
        let lines = self.names().iter().map(|name| broken(name, self.letters()).len());
        lines.max().unwrap_or(1)
    }

    /// Where the parts of a series lie on the axes.
    fn layout(&self, series: &Series) -> Shape {
        let place = |x: f64| if self.axis == Axis::PowersOfTwo { x.log2() } else { x };
        let points = series.points.iter().map(|&(x, y)| (place(x), y));
        if !matches!(self.axis, Axis::Categories(_)) {
            return match series.mark {
                Mark::Predicted => Shape::Line(points.collect()),
                Mark::Published => Shape::Dots(points.collect()),
            };
        }
        let predicted = || self.series.iter().filter(|other| other.mark == Mark::Predicted);
        // Published dots stand over the bar of the same colour.
        let slot = predicted().position(|other| other.colour == series.colour).unwrap_or(0);
        let width = 0.76 / predicted().count().max(1) as f64;
        let left = -0.38 + width * slot as f64;
        match series.mark {
            Mark::Predicted => {
                Shape::Bars(points.map(|(x, y)| [(x + left, 0.0), (x + left + width * 0.9, y)]).collect())
            }
            Mark::Published => Shape::Dots(points.map(|(x, y)| (x + left + width * 0.45, y)).collect()),
        }
    }
}

/// A series in the coordinates of the axes.
enum Shape {
    Line(Vec<(f64, f64)>),
    Dots(Vec<(f64, f64)>),
    /// Two opposite corners of each bar.
    Bars(Vec<[(f64, f64); 2]>),
}

/// Powers of two: the logarithm is drawn, the number shown.
struct Powers(Range<f64>);

impl Ranged for Powers {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        place(&self.0, *value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let (first, last) = (self.0.start.ceil() as i64, self.0.end.floor() as i64);
        let step = ((last - first) as usize).div_ceil(hint.max_num_points().clamp(1, 9)).max(1);
        (first..=last).step_by(step).map(|power| power as f64).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

impl ValueFormatter<f64> for Powers {
    fn format_ext(&self, value: &f64) -> String {
        let value = value.exp2();
        match value.log2().round() as i64 {
            ..10 => shown(value),
            10..20 => format!("{}Ki", shown(value / 1024.0)),
            _ => format!("{}Mi", shown(value / 1_048_576.0)),
        }
    }
}

/// Names at whole numbers.
struct Names {
    range: Range<f64>,
}

impl Ranged for Names {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        place(&self.range, *value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        Vec::new()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The figure writes them itself, in as many lines as they take.
impl ValueFormatter<f64> for Names {
    fn format_ext(&self, _: &f64) -> String {
        String::new()
    }
}

/// A name in lines of so many letters, where it can be broken: at blanks, behind arrows and dashes.
fn broken(name: &str, letters: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = name;
    while rest.chars().count() > letters {
        let ends = rest.match_indices([' ', '→', '-', '/']).map(|(at, mark)| at + mark.len());
        let fits = |end: &usize| rest[..*end].trim_end().chars().count() <= letters;
        let Some(end) = ends.clone().rfind(fits).or(ends.min()).filter(|end| *end < rest.len()) else {
            break;
        };
        lines.push(rest[..end].trim_end());
        rest = &rest[end..];
    }
    lines.push(rest);
    lines
}

fn place(range: &Range<f64>, value: f64, (start, end): (i32, i32)) -> i32 {
    start + ((value - range.start) / (range.end - range.start) * f64::from(end - start)).round() as i32
}

/// The least 1, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let ten = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * ten).find(|&step| step >= value).unwrap_or(value)
}

/// A number without needless decimals.
fn shown(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The element with a role and a name, scaling with the page, without namespace links (a page in HTML needs none).
fn accessible(svg: &str, title: &str) -> String {
    let head = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">",
        super::page::escape(title)
    );
    match svg.split_once('>') {
        Some((start, rest)) if start.starts_with("<svg") => format!("{head}{rest}"),
        _ => svg.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(axis: Axis, points: &[(f64, f64)]) -> Figure {
        let series = |mark| Series { name: "one".to_owned(), mark, colour: 0, points: points.to_vec() };
        Figure {
            id: "figure-0".to_owned(),
            title: "Curves & \"points\"".to_owned(),
            x: "payload, B".to_owned(),
            y: "Mb/s".to_owned(),
            axis,
            series: vec![series(Mark::Predicted), series(Mark::Published)],
            notes: Vec::new(),
        }
    }

    #[test]
    fn axes() {
        let check = |axis: Axis, labels: &[&str]| {
            let svg = figure(axis.clone(), &[(8.0, 100.0), (4096.0, 900.0)]).svg().unwrap();
            assert!(
                svg.starts_with("<svg role=\"img\" aria-label=\"Curves &amp; &quot;points&quot;\""),
                "{svg}"
            );
            assert_eq!(svg.matches("<circle").count(), 2, "{axis:?}");
            assert!(!svg.contains("http"), "{axis:?}");
            for label in labels {
                assert!(svg.contains(&format!("\n{label}\n")), "{label} with {axis:?} in {svg}");
            }
        };
        check(Axis::Linear, &["1000", "0", "payload, B", "Mb/s"]);
        check(Axis::PowersOfTwo, &["8", "64", "1Ki", "4Ki"]);
    }

    #[test]
    fn bars_have_names() {
        let names = vec!["TC0".to_owned(), "TC1".to_owned()];
        let svg = figure(Axis::Categories(names), &[(0.0, 10.0), (1.0, 20.0)]).svg().unwrap();
        assert!(svg.contains("\nTC0\n") && svg.contains("\nTC1\n"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn long_names_are_broken() {
        let check = |name, letters, lines: &[&str]| assert_eq!(broken(name, letters), lines, "{name}");
        check("TC0 and TC1", 20, &["TC0 and TC1"]);
        check("TC2, TC4, and TC6", 13, &["TC2, TC4, and", "TC6"]);
        check("MSMC→DDR3A", 8, &["MSMC→", "DDR3A"]);
        check("L2→MSMC", 3, &["L2→", "MSMC"]);
        check("UDP RX x4", 3, &["UDP", "RX", "x4"]);
        check("unbreakable", 3, &["unbreakable"]);
        check("", 0, &[""]);
    }

    #[test]
    fn refused() {
        let check = |axis, points: &[(f64, f64)], error| assert_eq!(figure(axis, points).svg(), Err(error));
        check(Axis::Linear, &[], PlotError::Empty);
        check(Axis::Linear, &[(0.0, f64::NAN)], PlotError::Point);
        check(Axis::PowersOfTwo, &[(0.0, 1.0)], PlotError::Point);
    }

    #[test]
    fn tops() {
        for (value, top) in
            [(0.0, 1.0), (9.0, 10.0), (10.0, 10.0), (11.3, 12.0), (8421.0, 10_000.0), (0.03, 0.03)]
        {
            assert!((round_up(value) - top).abs() < top * 1e-9, "{value} -> {}", round_up(value));
        }
    }
}
