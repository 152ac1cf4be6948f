//! Whether the driver reads frames rightly, and does not where one of its cache operations is left out.

use crate::rates;
use linerate_rtl_sim::softcore::{Softcore, Straps};

/// Clocks that start and frames may take: some times what they do.
const LIMIT: u64 = 20_000_000;
/// Frames that the image asks for.
const FRAMES: usize = 120;
/// Bytes that all frames have alike: addresses and type.
const HEADER: usize = 14;
/// What is left out, by its number.
const CASES: [&str; 4] = [
    "nothing is left out",
    "the cache is not emptied for a frame",
    "it is not noted when buffers are given to the interface",
    "descriptors are loaded through the cache",
];

/// Frames as they should be, others, and those that the image did not see.
struct Seen {
    right: usize,
    wrong: usize,
    missing: usize,
}

/// Runs the image with all operations and without each: a line for each.
pub fn run(image: &[u8]) -> Result<String, String> {
    let mut said = Vec::new();
    for (left_out, name) in (0..).zip(CASES) {
        let Seen { right, wrong, missing } =
            see(image, left_out).map_err(|error| format!("{name}: {error}"))?;
        let line = format!("{name}: of {FRAMES} frames {right} are right, {wrong} wrong, {missing} not seen");
        // Each of these shows, and nothing else does.
        let is_fine = right + wrong + missing == FRAMES && (right == FRAMES) == (left_out == 0);
        if !is_fine {
            return Err(line);
        }
        said.push(line);
    }
    Ok(said.join("\n"))
}

fn see(image: &[u8], left_out: u8) -> Result<Seen, String> {
    let mut core = Softcore::new(image, Straps { check: Some(left_out), ..Straps::default() })?;
    let mut said = Vec::new();
    while core.clocks() < LIMIT {
        core.clock();
        let Some(text) = rates::line(&mut core, &mut said) else { continue };
        let mut words = text.split_whitespace();
        let what = words.next();
        let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
        match (what, &numbers[..]) {
            (Some("numbered"), &[size, count, first]) => {
                (first..first + count).for_each(|number| core.send(frame(size, number)));
            }
            (Some("seen"), &[right, wrong, missing]) => return Ok(Seen { right, wrong, missing }),
            _ => eprintln!("{}", text.trim_end()),
        }
    }
    Err(format!("no end within {LIMIT} clocks"))
}

/// A frame to everybody with the bytes of this number.
fn frame(size: usize, number: usize) -> Vec<u8> {
    let mut frame = rates::frame(size);
    for (at, byte) in frame.iter_mut().enumerate().skip(HEADER) {
        *byte = number.wrapping_mul(37).wrapping_add(at) as u8;
    }
    frame
}
