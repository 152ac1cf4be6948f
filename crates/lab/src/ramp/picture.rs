//! Pictures of ramps: curves over rates, with axes of equal ratios.

use crate::report::page::escape;
use crate::report::plot::{DARK, FAINT, INK, LETTER, SERIES, TEXT, WIDTH, hex};
use plotters::coord::ranged1d::{AsRangedCoord, KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::fmt::Write as _;
use std::ops::Range;

const HEIGHT: u32 = 350;
/// Height of a line of the legend, above the curves.
const LINE: u32 = 22;
/// Where a line of the legend begins.
const LEFT: u32 = 12;

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A line with a dot at each level.
    Line,
    /// A thin line.
    Thin,
    /// Dots: from a document.
    Dots,
    /// A faint line, to compare with.
    Guide,
}

/// One curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Its name in the legend; empty for none.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Which of [`SERIES`] it takes.
    pub colour: usize,
    /// The points. Such as an axis of ratios cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// How numbers lie on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal steps for equal differences, from 0.
    Linear,
    /// Equal steps for equal ratios.
    Ratios,
}

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Caption.
    pub title: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its unit.
    pub y: String,
    /// Of x and y.
    pub scales: [Scale; 2],
    /// What is drawn.
    pub curves: Vec<Curve>,
    /// Knees: where, and in which colour.
    pub knees: Vec<(f64, usize)>,
}

impl Picture {
    /// An SVG element without links, to stand in a page; `None` without a point.
    pub fn svg(&self) -> Option<Result<String, String>> {
        let points = || {
            self.curves.iter().filter(|curve| curve.mark != Mark::Guide).flat_map(|curve| self.shown(curve))
        };
        let range = |of: fn((f64, f64)) -> f64, scale: Scale| {
            let (low, high) = points()
                .map(of)
                .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
            match scale {
                Scale::Linear => 0.0..if high > 0.0 { high * 1.08 } else { 1.0 },
                Scale::Ratios => low / 1.25..high.max(low * 1.1) * 1.25,
            }
        };
        points().next()?;
        let (x, y) = (range(|point| point.0, self.scales[0]), range(|point| point.1, self.scales[1]));
        let height = HEIGHT + self.legend_lines() * LINE;
        let mut svg = String::new();
        let drawn = match self.scales {
            [Scale::Ratios, Scale::Ratios] => self.draw(&mut svg, height, Ratios(x), Ratios(y)),
            [Scale::Ratios, Scale::Linear] => self.draw(&mut svg, height, Ratios(x), Plain(y)),
            [Scale::Linear, Scale::Ratios] => self.draw(&mut svg, height, Plain(x), Ratios(y)),
            [Scale::Linear, Scale::Linear] => self.draw(&mut svg, height, Plain(x), Plain(y)),
        };
        let head = format!(
            "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height}\">",
            escape(&self.title)
        );
        Some(drawn.map_err(|error| error.to_string()).map(|()| match svg.split_once('>') {
            Some((start, rest)) if start.starts_with("<svg") => format!("{head}{rest}"),
            _ => svg,
        }))
    }

    /// The same as a file of its own, with paper and title, light and dark.
    pub fn standalone(&self) -> Option<Result<String, String>> {
        let svg = match self.svg()? {
            Ok(svg) => svg,
            error => return Some(error),
        };
        let height = HEIGHT + self.legend_lines() * LINE;
        let mut style = format!(
            "text{{font-family:sans-serif;fill:{}}}.paper{{fill:#fff}}@media (prefers-color-scheme:dark){{.paper{{fill:#14171a}}text{{fill:#e6e8ea}}",
            hex(INK)
        );
        let colours = [(INK, "#e6e8ea"), (FAINT, "#343a41")].into_iter().chain(SERIES.into_iter().zip(DARK));
        for (light, dark) in colours {
            let light = hex(light);
            let _ = write!(style, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
        }
        let body = svg.split_once('>').map_or("", |(_, rest)| rest);
        let title = escape(&self.title);
        Some(Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -30 {WIDTH} {}\" role=\"img\" aria-label=\"{title}\">\
             <style>{style}}}</style><rect class=\"paper\" y=\"-30\" width=\"{WIDTH}\" height=\"{}\"/>\
             <text x=\"16\" y=\"-8\" font-size=\"16\" font-weight=\"bold\">{title}</text>{body}\n",
            height + 30,
            height + 30
        )))
    }

    /// Points that the axes can show.
    fn shown<'a>(&'a self, curve: &'a Curve) -> impl Iterator<Item = (f64, f64)> + 'a {
        let fits = |value: f64, scale: Scale| value.is_finite() && (scale == Scale::Linear || value > 0.0);
        curve
            .points
            .iter()
            .copied()
            .filter(move |(x, y)| fits(*x, self.scales[0]) && fits(*y, self.scales[1]))
    }

    /// Where the names stand: line and place of each.
    fn legend(&self) -> Vec<(u32, u32, &Curve)> {
        let (mut x, mut line) = (LEFT, 0);
        let mut places = Vec::new();
        for curve in self.curves.iter().filter(|curve| !curve.name.is_empty()) {
            let width = curve.name.chars().count() as u32 * LETTER + 40;
            if x + width > WIDTH - 10 && x > LEFT {
                (x, line) = (LEFT, line + 1);
            }
            places.push((x, line, curve));
            x += width;
        }
        places
    }

    fn legend_lines(&self) -> u32 {
        self.legend().last().map_or(0, |(_, line, _)| line + 1)
    }

    fn draw<X, Y>(&self, svg: &mut String, height: u32, x: X, y: Y) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<CoordDescType = X, Value = f64> + Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: AsRangedCoord<CoordDescType = Y, Value = f64> + Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
        let text = ("sans-serif", TEXT).into_font().color(&INK);
        for (x, line, curve) in self.legend() {
            let colour = SERIES[curve.colour % SERIES.len()];
            let middle = (line * LINE + 12) as i32;
            let x = x as i32;
            match curve.mark {
                Mark::Dots => root.draw(&Circle::new((x + 9, middle), 4, colour.filled()))?,
                Mark::Guide => {
                    root.draw(&PathElement::new([(x, middle), (x + 18, middle)], FAINT.stroke_width(3)))?
                }
                Mark::Thin => {
                    root.draw(&PathElement::new([(x, middle), (x + 18, middle)], colour.stroke_width(1)))?
                }
                Mark::Line => {
                    root.draw(&PathElement::new([(x, middle), (x + 18, middle)], colour.stroke_width(3)))?
                }
            }
            root.draw(&Text::new(curve.name.clone(), (x + 24, middle - 7), text.clone()))?;
        }
        let (_, body) = root.split_vertically(height - HEIGHT);
        let Range { start: left, end: right } = x.range();
        let Range { start: bottom, end: top } = y.range();
        let mut chart = ChartBuilder::on(&body)
            .margin(8)
            .x_label_area_size(47)
            .y_label_area_size(70)
            .build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(FAINT).axis_style(INK);
        mesh.label_style(text.clone()).axis_desc_style(text.clone()).x_labels(7).y_labels(7);
        mesh.x_desc(self.x.as_str()).y_desc(self.y.as_str()).draw()?;
        for curve in &self.curves {
            let colour = SERIES[curve.colour % SERIES.len()];
            // A guide may lead beyond the axes.
            let is_inside = |(x, y): &(f64, f64)| (left..=right).contains(x) && (bottom..=top).contains(y);
            let points: Vec<(f64, f64)> = self.shown(curve).filter(is_inside).collect();
            if curve.mark != Mark::Dots {
                let style = match curve.mark {
                    Mark::Guide => FAINT.stroke_width(3),
                    Mark::Thin => colour.stroke_width(1),
                    _ => colour.stroke_width(2),
                };
                chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            }
            if matches!(curve.mark, Mark::Dots | Mark::Line) {
                let size = if curve.mark == Mark::Dots { 4 } else { 3 };
                chart.draw_series(points.iter().map(|point| Circle::new(*point, size, colour.filled())))?;
            }
        }
        for (at, colour) in self.knees.iter().filter(|(at, _)| (left..=right).contains(at)) {
            let colour = SERIES[colour % SERIES.len()];
            chart.draw_series(DashedLineSeries::new(
                [(*at, bottom), (*at, top)],
                5,
                4,
                colour.stroke_width(1),
            ))?;
            chart.draw_series([Text::new(" knee", (*at, top), text.clone())])?;
        }
        root.present()?;
        Ok(())
    }
}

/// An axis of equal differences.
struct Plain(Range<f64>);

/// An axis of equal ratios.
struct Ratios(Range<f64>);

impl Ranged for Plain {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        place((value - self.0.start) / (self.0.end - self.0.start), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let about = (self.0.end - self.0.start) / hint.max_num_points().max(2) as f64;
        let ten = 10f64.powf(about.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * ten).into_iter().find(|step| *step >= about);
        let step = step.unwrap_or(ten * 10.0);
        (0..=(self.0.end / step) as usize).map(|number| number as f64 * step).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

impl Ranged for Ratios {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        place((value / self.0.start).ln() / (self.0.end / self.0.start).ln(), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let decades = (self.0.end / self.0.start).log10();
        let steps: &[f64] = match decades {
            ..1.5 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            ..3.2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (first, last) = (self.0.start.log10().floor() as i32, self.0.end.log10().ceil() as i32);
        let all = (first..=last).flat_map(|ten| steps.iter().map(move |step| step * 10f64.powi(ten)));
        all.filter(|value| self.0.contains(value)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

impl ValueFormatter<f64> for Plain {
    fn format_ext(&self, value: &f64) -> String {
        shown(*value)
    }
}

impl ValueFormatter<f64> for Ratios {
    fn format_ext(&self, value: &f64) -> String {
        shown(*value)
    }
}

fn place(share: f64, (start, end): (i32, i32)) -> i32 {
    start + (share * f64::from(end - start)).round() as i32
}

/// A number without needless decimals, thousands and millions as letters.
fn shown(value: f64) -> String {
    let (value, letter) = match value {
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.4}");
    format!("{}{letter}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(scales: [Scale; 2], points: &[(f64, f64)]) -> Picture {
        let curve =
            |name: &str, mark| Curve { name: name.to_owned(), mark, colour: 1, points: points.to_vec() };
        Picture {
            title: "A & B".into(),
            x: "requests/s".into(),
            y: "ms".into(),
            scales,
            curves: vec![curve("line", Mark::Line), curve("dots", Mark::Dots), curve("", Mark::Guide)],
            knees: vec![(20.0, 0)],
        }
    }

    #[test]
    fn axes() {
        let points = [(10.0, 0.1), (20.0, 3.0), (40_000.0, 900.0)];
        for scales in [
            [Scale::Ratios, Scale::Ratios],
            [Scale::Linear, Scale::Ratios],
            [Scale::Linear; 2],
            [Scale::Ratios, Scale::Linear],
        ] {
            let svg = picture(scales, &points).svg().unwrap().unwrap();
            assert!(svg.starts_with("<svg role=\"img\" aria-label=\"A &amp; B\""), "{svg}");
            // Three dots each for the line and the dots, and one of the legend.
            assert_eq!(svg.matches("<circle").count(), 7);
            assert!(svg.contains(" knee\n") && svg.contains("\nline\n") && !svg.contains("http"), "{svg}");
        }
        let svg = picture([Scale::Ratios; 2], &points).standalone().unwrap().unwrap();
        assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("A &amp; B"));
    }

    #[test]
    fn what_an_axis_cannot_show_is_left_out() {
        let svg =
            picture([Scale::Ratios; 2], &[(10.0, 0.0), (f64::NAN, 1.0), (30.0, f64::INFINITY), (20.0, 2.0)]);
        assert_eq!(svg.svg().unwrap().unwrap().matches("<circle").count(), 3);
        assert_eq!(picture([Scale::Ratios; 2], &[(1.0, 0.0)]).svg(), None);
    }

    #[test]
    fn numbers() {
        for (value, text) in [(0.05, "0.05"), (1500.0, "1500"), (20_000.0, "20k"), (2e6, "2M"), (0.0, "0")] {
            assert_eq!(shown(value), text);
        }
    }
}
