//! The staircase of latencies as a picture: both axes by ratio, measured lines with what was predicted as dots.

use crate::quantity;
use crate::report::plot::{FAINT, INK, SERIES, TEXT, WIDTH};
use plotters::prelude::*;

/// Width and height in pixels; the page scales it.
const SIZE: (u32, u32) = (WIDTH, 400);

/// A curve: its name, what was measured, and what was predicted of the points that calibrated nothing.
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Bytes and cycles.
    pub measured: Vec<(f64, f64)>,
    /// Bytes and cycles.
    pub predicted: Vec<(f64, f64)>,
}

/// The picture; `levels` are where levels end, in bytes, with their names.
///
/// # Errors
/// What the drawing library says; no curve with a point.
pub fn svg(title: &str, curves: &[Curve], levels: &[(f64, String)]) -> Result<String, String> {
    let all = || curves.iter().flat_map(|curve| curve.measured.iter().chain(&curve.predicted));
    let of = |pick: fn(&(f64, f64)) -> f64| {
        let values = || all().map(pick).filter(|value| *value > 0.0 && value.is_finite());
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let ((left, right), (low, high)) = (of(|point| point.0), of(|point| point.1));
    if right <= 0.0 || high <= 0.0 {
        return Err("no point to draw".to_owned());
    }
    let mut svg = String::new();
    draw(&mut svg, curves, levels, (left, right), (low, high)).map_err(|error| error.to_string())?;
    let (width, height) = SIZE;
    let head = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\">",
        crate::report::page::escape(title)
    );
    let (_, rest) = svg.split_once('>').ok_or("an empty picture")?;
    Ok(format!("{head}{rest}"))
}

fn draw(
    svg: &mut String,
    curves: &[Curve],
    levels: &[(f64, String)],
    (left, right): (f64, f64),
    (low, high): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let (bottom, top) = ((low * 0.8).log10(), (high * 1.6).log10());
    let x = (left.log2() - 0.2)..(right.log2() + 0.3);
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(47)
        .y_label_area_size(66)
        .build_cartesian_2d(x, bottom..top)?;
    let text = ("sans-serif", TEXT).into_font().color(&INK);
    let bytes = |power: &f64| quantity::bytes(2f64.powf(power.round()) as u64);
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(INK)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .x_labels(6)
        .y_labels(0)
        .x_label_formatter(&bytes)
        .x_desc("working set")
        .y_desc("cycles of a load")
        .draw()?;
    let (from, to) = (left.log2() - 0.2, right.log2() + 0.3);
    for value in grid(low * 0.8, high * 1.6) {
        let at = value.log10();
        chart.draw_series(LineSeries::new([(from, at), (to, at)], FAINT.stroke_width(1)))?;
        let label = text.clone().pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Right,
            plotters::style::text_anchor::VPos::Center,
        ));
        let (px, py) = chart.backend_coord(&(from, at));
        root.draw(&Text::new(format!("{value}"), (px - 6, py), label))?;
    }
    for (size, name) in levels {
        let at = size.log2();
        chart.draw_series(DashedLineSeries::new([(at, bottom), (at, top)], 4, 4, INK.stroke_width(1)))?;
        chart.draw_series([Text::new(
            name.clone(),
            (at + 0.08, top - (top - bottom) * 0.015),
            text.clone(),
        )])?;
    }
    for (number, curve) in curves.iter().enumerate() {
        let colour = SERIES[number % SERIES.len()];
        let place = |(size, cycles): &(f64, f64)| (size.log2(), cycles.log10());
        chart.draw_series(LineSeries::new(curve.measured.iter().map(place), colour.stroke_width(2)))?;
        chart
            .draw_series(curve.predicted.iter().map(|point| Circle::new(place(point), 4, colour.filled())))?;
    }
    root.present()?;
    Ok(())
}

/// 1, 2 and 5 times powers of ten within a range.
fn grid(low: f64, high: f64) -> Vec<f64> {
    let powers = (-3..8).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
    powers.filter(|value| (low..=high).contains(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_has_its_points_and_levels() {
        let measured = vec![(4096.0, 4.0), (65536.0, 14.0), (1048576.0, 200.0)];
        let curve = Curve { name: "64 B apart".into(), predicted: vec![(65536.0, 15.0)], measured };
        let drawn = svg("A & B", &[curve], &[(49152.0, "L1".into())]).unwrap();
        assert!(drawn.starts_with("<svg role=\"img\" aria-label=\"A &amp; B\""), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 1);
        for part in ["\nL1\n", "\n100\n", "working set", "#1B1F23", "#005FB8"] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        assert!(svg("", &[], &[]).is_err());
    }
}
