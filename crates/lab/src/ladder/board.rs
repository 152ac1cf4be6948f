//! The board: instructions of a segment as the emulator counted them, as the rate that a core of 1 GHz would reach.
//!
//! A count is of one image: its offloads are those of its `board.toml`. What the emulator cannot tell is time, so the rate is
//! that of a processor which takes a cycle for each instruction, behind the line of the ladder.

use super::climb::{Climb, Expected, Found, Row};
use super::constants::{Constants, Whose};
use super::model;
use super::rungs::{self, Rung};
use super::state::{Direction, State};
use crate::measure::statistics::Spread;
use crate::schema::Record;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The board in the file.
const BOARD: &str = "virt-a15";
/// Bytes of a segment that instructions are counted for.
const SEGMENT: f64 = 1_460.0;
/// Files of `cargo xtask board all bench`: with the offloads of the interface, and of an image without.
pub const FILES: [(&str, &str); 2] =
    [("offloads", "target/boards/bench.json"), ("software", "target/boards/bench-software.json")];

/// The rungs of the board from these files, each with what its image has: `offloads` or `software`.
///
/// # Errors
/// A file that is there and has other content than the board's figures. A file that is missing is left out, and says so.
pub fn read(files: &[(String, PathBuf)], constants: &Constants, figures: &[Record]) -> Result<Climb, String> {
    let mut climb = Climb {
        board: BOARD.to_owned(),
        title: "On the emulated Cortex-A15, instructions counted, as the rate of 1 GHz".to_owned(),
        rows: Vec::new(),
        left_out: Vec::new(),
    };
    for (image, path) in files {
        let Ok(text) = std::fs::read_to_string(path) else {
            let how = "cargo xtask board virt-a15 bench makes it (docs/boards.md)";
            climb.left_out.push((image.clone(), format!("{} is not there: {how}", path.display())));
            continue;
        };
        let report: Value =
            serde_json::from_str(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        for (direction, counted) in [(Direction::Sending, "sending"), (Direction::Receiving, "receiving")] {
            let pointer = format!("/boards/{BOARD}/instructions/{counted}/per_segment");
            let instructions = report
                .pointer(&pointer)
                .and_then(Value::as_f64)
                .ok_or_else(|| format!("{}: expected a number at {pointer}", path.display()))?;
            climb.rows.push(row(image, path, direction, instructions, constants, figures));
        }
    }
    let others = rungs::all().into_iter().filter(|rung| !is_counted(rung));
    climb.left_out.extend(others.map(|rung| {
        (rung.name.to_owned(), "no image of the board is built so, and a count knows no windows".to_owned())
    }));
    Ok(climb)
}

/// Whether the board's images stand on this rung: 64 KiB or more of buffers, compiled for speed, payload handed over.
fn is_counted(rung: &Rung) -> bool {
    matches!(rung.name, "offloaded" | "rx-offloaded")
}

fn row(
    image: &str,
    path: &Path,
    direction: Direction,
    instructions: f64,
    constants: &Constants,
    figures: &[Record],
) -> Row {
    let line = constants.line.value / 8e6 * SEGMENT / (SEGMENT + 40.0 + 38.0);
    let processor = constants.clock.value / instructions * SEGMENT / 1e6;
    let megabytes = line.min(processor);
    let (limit, next) = if line < processor {
        ("the interface", ("the processor", processor))
    } else {
        ("the processor", ("the interface", line))
    };
    let because =
        format!("{instructions:.0} instructions for each 1,460 B; then {} at {:.0} MB/s", next.0, next.1);
    Row {
        rung: format!("{}{image}", if direction == Direction::Receiving { "rx-" } else { "" }),
        title: format!("the board's image, {image}"),
        from: None,
        direction,
        predicted: predicted(image, direction, constants),
        measured: Some(Found {
            megabytes: Spread { median: megabytes, least: megabytes, most: megabytes },
            load: Some(megabytes / processor),
            limit: limit.to_owned(),
            because,
            how: format!("instructions counted, {}", path.display()),
        }),
        published: super::climb::printed(figures, direction, Some("all changes")),
        described: None,
    }
}

/// The model has the counts of an image without offloads as constants; with all offloads super-segments share what it
/// counts for each.
fn predicted(image: &str, direction: Direction, constants: &Constants) -> Option<Expected> {
    if image != "software" {
        return None;
    }
    let state = State {
        write: 64 << 10,
        gives_way: false,
        optimized: true,
        copies: false,
        buffer: 1 << 20,
        peer_window: 1 << 20,
        driver_improved: true,
        ..State::as_ported(direction)
    };
    model::predict(&state, constants, Whose::Counted).ok().map(Into::into)
}
