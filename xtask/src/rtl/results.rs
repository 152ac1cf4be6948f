//! `rtl/RESULTS.md`: the record as a page.

use super::record::Record;
use anyhow::Result;
use std::fmt::Write as _;

/// The page with all results.
pub fn page(record: &Record) -> Result<String> {
    let mut text = String::from(
        "# Results of the blocks\n\nMade by `cargo xtask rtl` from `rtl/results.toml`, which also has the hash of the sources that each result belongs to.\n",
    );
    sizes(record, &mut text)?;
    comparisons(record, &mut text)?;
    faults(record, &mut text)?;
    proofs(record, &mut text)?;
    Ok(text)
}

fn sizes(record: &Record, text: &mut String) -> Result<()> {
    text.push_str(
        "\n## Size and clock\n\n`cargo xtask rtl synth --long`. DATA_W = 64. ECP5 (LFE5UM-85F, speed grade 8): yosys and nextpnr, out of context, with registers behind block RAMs moved into them,\n\
         the middle of three seeds of the placer, all three behind; 156.25 MHz carry 10 Gb/s. LUT4 counts a carry cell as two. xc7: yosys alone, so\n\
         without a clock. RAM: 18 kbit each.\n\n\
         | block | ECP5 LUT4 | FF | RAM | MHz | (seeds) | xc7 LUT | FF | RAM18 | date |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, result) in &record.synthesis {
        let seeds: Vec<String> = result.fmax_mhz.iter().map(|mhz| format!("{mhz:.0}")).collect();
        writeln!(
            text,
            "| {name} | {} | {} | {} | {:.1} | {} | {} | {} | {} | {} |",
            result.ecp5_lut4,
            result.ecp5_ff,
            result.ecp5_ram,
            result.mhz(),
            seeds.join(", "),
            result.xc7_lut,
            result.xc7_ff,
            result.xc7_ram18,
            result.date
        )?;
    }
    if record.synthesis.contains_key("nic") {
        text.push_str("\n`nic`, the whole, is placed with one seed, and not again in CI.\n");
    }
    Ok(())
}

fn comparisons(record: &Record, text: &mut String) -> Result<()> {
    text.push_str(
        "\n## Compared with the reference\n\n`cargo xtask rtl random BLOCK --long`: random frames, without a difference. `@` is the width of the stream where it is not 64 bit.\n\
         `int_pacer` counts packets, `rss_hash` tuples.\n\n| block | frames | seed | date |\n|---|---|---|---|\n",
    );
    for (name, result) in &record.random {
        writeln!(text, "| {name} | {} | {} | {} |", result.frames, result.seed, result.date)?;
    }
    Ok(())
}

fn faults(record: &Record, text: &mut String) -> Result<()> {
    text.push_str(
        "\n## Seeded faults\n\n`cargo xtask rtl mutants BLOCK`: how many the comparison finds with so many frames. Left out are mutants that yosys proves to be none, and\n\
         those of which `rtl/BLOCK/mutants.toml` argues that nothing can be seen of them, with others in their place.\n\n\
         | block | found | of | left out by proof | by argument | frames | seed | date |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (name, result) in &record.mutants {
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            result.killed,
            result.total,
            result.equivalent,
            result.argued,
            result.frames,
            result.seed,
            result.date
        )?;
    }
    Ok(())
}

fn proofs(record: &Record, text: &mut String) -> Result<()> {
    text.push_str(
        "\n## Proofs\n\n`cargo xtask rtl formal --long`. What each states is in the file beside it.\n\n| proof | result | date |\n|---|---|---|\n",
    );
    for (name, result) in &record.proofs {
        let shown = name.trim_start_matches("rtl/");
        writeln!(text, "| [{shown}]({shown}) | {} | {} |", result.result, result.date)?;
    }
    Ok(())
}
