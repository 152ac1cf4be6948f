//! The board: instructions of a segment as the emulator counted them, as the rate that a core of 1 GHz would reach.
//!
//! A count is of one image: its offloads are those of its `board.toml`. What the emulator cannot tell is time, so the rate is
//! that of a processor which takes a cycle for each instruction, behind the line of the ladder.

use super::climb::{Climb, Expected, Found, Row};
use super::constants::{Constants, Whose};
use super::model::{self, ETHERNET};
use super::state::{Direction, HEADERS, State};
use crate::measure::statistics::Spread;
use crate::schema::Record;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The board in the file.
const BOARD: &str = "virt-a15";
/// Bytes of a segment that instructions are counted for.
const SEGMENT: f64 = 1_460.0;
/// The largest packet on the line, in bytes.
const MTU: f64 = 1_500.0;
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
        notes: Vec::new(),
    };
    for (image, path) in files {
        let Ok(text) = std::fs::read_to_string(path) else {
            let how = match image.as_str() {
                "software" => "docs/lab/ladder.md says how it is made",
                _ => "cargo xtask board virt-a15 bench makes it (docs/boards.md)",
            };
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
    climb.left_out.push((
        "all other rungs".to_owned(),
        "no image of the board is built so, and counted instructions know no windows and no round trips"
            .to_owned(),
    ));
    Ok(climb)
}

fn row(
    image: &str,
    path: &Path,
    direction: Direction,
    instructions: f64,
    constants: &Constants,
    figures: &[Record],
) -> Row {
    // With timestamps, as the model has it: 1,448 bytes of 1,538.
    let around: f64 = ETHERNET.iter().sum();
    let line = constants.line.value / 8e6 * (MTU - HEADERS) / (MTU + around);
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
            kept: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_board() {
        let constants = Constants::load().unwrap();
        let path = std::env::temp_dir().join(format!("linerate-ladder-board-{}.json", std::process::id()));
        let check = |text: &str, expected: Result<usize, &str>| {
            std::fs::write(&path, text).unwrap();
            match (read(&[("software".to_owned(), path.clone())], &constants, &[]), expected) {
                (Ok(climb), Ok(rows)) => {
                    assert_eq!(climb.rows.len(), rows);
                    for row in &climb.rows {
                        // The line limits both: they count the same bytes around a segment.
                        assert!(row.error().is_some_and(|error| error.abs() < 1e-6), "{row:?}");
                        assert_eq!(row.measured.as_ref().unwrap().limit, "the interface");
                    }
                }
                (found, Err(wanted)) => assert!(found.unwrap_err().contains(wanted)),
                (found, Ok(_)) => panic!("{found:?}"),
            }
        };
        // Instructions of an image without offloads, as counted on 2026-11-24.
        check(
            r#"{"boards":{"virt-a15":{"instructions":{"sending":{"per_segment":2408.0},"receiving":{"per_segment":2460.0}}}}}"#,
            Ok(2),
        );
        check("{}", Err("expected a number at /boards/virt-a15/instructions/sending/per_segment"));
        check("[", Err("EOF while parsing"));
        std::fs::remove_file(&path).unwrap();
        let climb = read(&[("offloads".to_owned(), path)], &constants, &[]).unwrap();
        assert!(climb.rows.is_empty() && climb.left_out[0].1.contains("is not there"), "{climb:?}");
    }
}
