//! Whether the driver reads frames rightly, and does not where one of its cache operations is left out.

use linerate_rtl_sim::softcore::{LeftOut, Softcore, Straps};

/// Clocks that start and frames may take: some times what they do.
const LIMIT: u64 = 20_000_000;
/// Frames that the image asks for.
const FRAMES: usize = 120;
const CASES: [(&str, LeftOut); 4] = [
    ("nothing is left out", LeftOut::Nothing),
    ("the cache is not emptied for a frame", LeftOut::Emptying),
    ("it is not noted when buffers are given to the interface", LeftOut::Noting),
    ("descriptors are loaded through the cache", LeftOut::GoingPast),
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
    for (name, left_out) in CASES {
        let Seen { right, wrong, missing } =
            see(image, left_out).map_err(|error| format!("{name}: {error}"))?;
        let line = format!("{name}: of {FRAMES} frames {right} are right, {wrong} wrong, {missing} not seen");
        // Each of these shows, and nothing else does.
        let is_fine =
            right + wrong + missing == FRAMES && (right == FRAMES) == (left_out == LeftOut::Nothing);
        if !is_fine {
            return Err(line);
        }
        said.push(line);
    }
    Ok(said.join("\n"))
}

fn see(image: &[u8], left_out: LeftOut) -> Result<Seen, String> {
    let mut core = Softcore::new(image, Straps { check: Some(left_out), ..Straps::default() })?;
    let mut said = Vec::new();
    while core.clocks() < LIMIT {
        core.clock();
        let piece = core.console();
        said.extend(piece.iter().filter(|byte| **byte != b'\r'));
        if piece.last() != Some(&b'\n') {
            continue;
        }
        let text = String::from_utf8_lossy(&std::mem::take(&mut said)).into_owned();
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
    let mut frame: Vec<u8> = (0..size).map(|at| number.wrapping_mul(37).wrapping_add(at) as u8).collect();
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 100]);
    // For experiments (IEEE 802, 9.2.3).
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}
