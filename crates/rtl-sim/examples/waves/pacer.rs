//! Interrupt pacing.

use crate::record::{PLAIN, Picture, Sample, Scope};
use linerate_rtl_sim::Dut;

/// Clocks in which packets come, and in which the driver takes them.
const PACKETS: [usize; 6] = [2, 5, 19, 20, 21, 22];
const TAKEN: [usize; 2] = [16, 26];

/// An interrupt by the timer, then one by the threshold.
pub fn two_ways() -> Result<Picture, String> {
    let mut dut = Dut::open("int_pacer").map_err(|error| error.to_string())?;
    let set = |dut: &mut Dut, name: &str, value: u64| -> Result<(), String> {
        let port = dut.port(name)?;
        dut.set(port, value);
        Ok(())
    };
    for (name, value) in [("cfg_tick_clocks", 1), ("cfg_mode", 2), ("cfg_timer", 10), ("cfg_threshold", 4)] {
        set(&mut dut, name, value)?;
    }
    dut.reset()?;
    // Settings are in force two clocks later.
    for _ in 0..4 {
        dut.settle();
        dut.edge();
    }
    let mut scope = Scope::default();
    scope.bit(&dut, "packet", 0)?;
    let pending = dut.port("pending")?;
    scope.add("pending[15:0]", move |dut| Sample::value((dut.get(pending) & 0xffff).to_string(), PLAIN));
    scope.bit(&dut, "irq", 0)?;
    scope.bit(&dut, "taken", 0)?;
    for clock in 0..30 {
        set(&mut dut, "packet", u64::from(PACKETS.contains(&clock)))?;
        set(&mut dut, "taken", u64::from(TAKEN.contains(&clock)))?;
        dut.settle();
        scope.sample(&dut);
        dut.edge();
    }
    let mut picture = scope.picture(
        "int_pacer: mode 2, a timer of 10 clocks since the first new packet, a threshold of 4",
        &[
            "Two packets wait until the timer, which runs from the first of them, fires. Four in a row reach the threshold and interrupt",
            "at once. irq stays until the driver takes what is there.",
        ],
    );
    picture.measure(("packet[0]", 0, ""), ("irq[0]", ""), "from the first packet")?;
    picture.measure(("packet[0]", PACKETS[5], ""), ("irq[0]", ""), "from the fourth")?;
    Ok(picture)
}
