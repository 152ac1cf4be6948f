//! The medians as a bar chart, for the README.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// What is drawn of one setting.
pub struct Bars {
    /// Who serves over what.
    pub name: &'static str,
    /// Gb/s into and out of the server.
    pub rates: [f64; 2],
}

const WIDTH: u32 = 900;
/// Height of the title and of one setting in pixels.
const TITLE: i32 = 66;
const ROW: i32 = 54;
/// Where bars begin, and the most that they may take, in pixels.
const LEFT: i32 = 330;
const LONGEST: f64 = 480.0;
const BAR: i32 = 18;
const INK: RGBColor = RGBColor(0x1B, 0x1F, 0x23);
const COLOURS: [RGBColor; 2] = [RGBColor(0x2B, 0x6C, 0xB0), RGBColor(0xDD, 0x8A, 0x1F)];

/// Draws the chart.
pub fn draw(path: &str, title: &str, settings: &[Bars]) -> Result<(), Box<dyn Error>> {
    let height = TITLE + ROW * settings.len() as i32 + 12;
    let area = SVGBackend::new(path, (WIDTH, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font().color(&INK);
    let right = |size: i32| font(size).pos(Pos::new(HPos::Right, VPos::Center));
    let left = |size: i32| font(size).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(title.to_owned(), (16, 22), left(17)))?;
    for (at, (name, colour)) in ["into the server", "out of the server"].iter().zip(COLOURS).enumerate() {
        let x = LEFT + 170 * at as i32;
        area.draw(&Rectangle::new([(x, 42), (x + 12, 54)], colour.filled()))?;
        area.draw(&Text::new(*name, (x + 18, 48), left(13)))?;
    }
    let most = settings.iter().flat_map(|bars| bars.rates).fold(f64::MIN_POSITIVE, f64::max);
    for (row, bars) in settings.iter().enumerate() {
        let top = TITLE + ROW * row as i32;
        area.draw(&Text::new(bars.name, (LEFT - 12, top + BAR), right(14)))?;
        for (at, (rate, colour)) in bars.rates.iter().zip(COLOURS).enumerate() {
            let y = top + BAR * at as i32;
            let end = LEFT + (rate / most * LONGEST) as i32;
            area.draw(&Rectangle::new([(LEFT, y), (end, y + BAR - 2)], colour.filled()))?;
            let value = format!("{rate:.1} Gb/s");
            area.draw(&Text::new(value, (end + 6, y + BAR / 2), left(13)))?;
        }
    }
    area.present()?;
    Ok(())
}
