//! Every block that has a comparison, with the same random frames through the RTL and its reference.

/// Frames for each block: few here, `cargo xtask rtl random` runs more.
const FRAMES: u64 = 3_000;

#[test]
fn every_block_equals_its_reference() {
    if !linerate_rtl_sim::is_available() {
        eprintln!("skipped: {}", linerate_rtl_sim::Unavailable::NoVerilator);
        return;
    }
    for (name, _) in linerate_rtl_sim::blocks::ALL {
        let began = std::time::Instant::now();
        match linerate_rtl_sim::blocks::compare(name, 1, FRAMES) {
            Ok(coverage) => println!("{name}: {coverage}, {:.1?}", began.elapsed()),
            Err(fault) => panic!("{name}: {fault}"),
        }
    }
}
