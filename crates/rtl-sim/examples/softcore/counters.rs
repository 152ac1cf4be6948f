//! What an image counts by itself, if the compiler has made it.

use linerate_rtl_sim::softcore::Softcore;

/// Clocks that the answer may take.
const PATIENCE: u64 = 100_000_000;

/// Asks at the console, and returns the counters as they lie in memory.
pub fn read(core: &mut Softcore) -> Result<Vec<u8>, String> {
    core.console();
    core.type_text(b"counters\r");
    let (mut said, limit) = (Vec::new(), core.clocks() + PATIENCE);
    while core.clocks() < limit {
        core.clock();
        said.extend(core.console());
        if let Some((at, len)) = announced(&said)
            && said.len() >= at + len
        {
            return Ok(said[at..at + len].to_vec());
        }
    }
    Err(format!("no counters within {PATIENCE} clocks, but {} bytes", said.len()))
}

/// Where they begin, and how many bytes they are.
fn announced(said: &[u8]) -> Option<(usize, usize)> {
    const BEFORE: &[u8] = b"counters ";
    const BEHIND: &[u8] = b"\r\n";
    // Only the beginning is text. What was typed is shown without a number.
    let head = &said[..said.len().min(512)];
    let find = |from: usize, what: &[u8]| {
        head[from..].windows(what.len()).position(|at| at == what).map(|at| from + at)
    };
    let number = find(0, BEFORE)? + BEFORE.len();
    let end = find(number, BEHIND)?;
    let len = std::str::from_utf8(&head[number..end]).ok()?.parse().ok()?;
    Some((end + BEHIND.len(), len))
}
