//! The errata of the KeyStone II guide as we read it, each with the findings that have to name it.
//!
//! The list is ours: made by reading every table against its neighbours, its caption and the text. A reader who reads with
//! other eyes has another list. What is on it and not found is said too, and so is what the audit says beyond it.

use super::{ids, keystone2};
use crate::audit::{OfModel, run};
use crate::soc;

/// An erratum: where, what, and the findings of which one has to be there; none where no rule sees it.
type Erratum = (&'static str, &'static str, &'static [&'static str]);

/// Errata in numbers and names: what misleads whoever computes with the guide.
const ERRATA: &[Erratum] = &[
    ("table 1, EDMA4", "19200 and 12800 for one formula", &["formula:1/EDMA4", "formula-cell:1/EDMA4"]),
    ("table 1, footnote 2", "stands at EDMA4 and speaks of EDMA0", &["footnote-row:1/"]),
    ("table 1, caption", "names IDMA, no row has it", &["caption-parts:1/IDMA"]),
    (
        "table 1, EDMA0 and EDMA4",
        "at half the core's clock; section 2.3: a third",
        &["claim:1/EDMA0", "claim:1/EDMA4"],
    ),
    ("table 1, ARM A15", "counts with 256 bits; section 2.2: AXI of 128", &["factor:1/ARM A15 Core"]),
    ("section 2.1", "16 GB/s a CorePac; table 1: 19.2", &["claim:1/C66x Core"]),
    ("section 2.2", "the DSP's IDMA described as the ARM's", &["paragraph-twice:2.2/"]),
    ("section 2.2", "one number for two documents", &["document-number:2.2/SPRUGW0"]),
    ("table 2, DSP L2", "16000 for 256 bits at 600 MHz", &["formula:2/DSP L2"]),
    ("table 2, heading", "memories headed `Master`", &["caption-corner:2"]),
    ("table 4", "no unit; the text calls latencies stalls", &["unit-missing:4"]),
    ("table 5, legend", "a cross means no connection", &["legend:5"]),
    ("table 7", "11843 for two pairs of controllers that differ in width", &["value-twice:7/"]),
    ("section 5.2.5", "DDR3B is called SRAM", &["name-kind:5.2.5/\"DDR3B SRAM\""]),
    ("table 11", "efficiencies that do not follow", &["quotient:11/Total Transfer Efficiency/1"]),
    ("table 11", "efficiencies of another table: which", &["copied-row:11/"]),
    ("figure 6", "one caption in the list, another where it stands", &["caption-list:5.2.5/figure 6"]),
    ("section 7, tables 16, 17 and 20", "rates 2.4 % high: 1024 for 1000", &["prefix:7.1/tables 16, 17, 20"]),
    ("table 16", "DDR3 columns are those of L2, digit by digit", &["copy:16"]),
    ("tables 16 to 19", "measured with L2, says the text, and have DDR3", &["column-text:16/"]),
    ("tables 20 and 21", "measured with MSMC too, says the text, and have none", &["column-text:20/"]),
    ("table 19", "5 Gbps under a caption of 3.125", &["caption-text:19/", "caption-twice:19"]),
    ("table 20, 128 B", "faster over one lane than over four", &["fewer-lanes-faster:20/128/6"]),
    ("table 20, 128 B", "takes less time than 64 B", &["time-falls:20/128/6"]),
    ("table 20, 1024 and 2048 B", "one value for two rows in five of six columns", &["value-twice:20/2048"]),
    ("section 7.2.1", "16 B a packet; the cells say 21.7", &["overhead:20/"]),
    ("section 8.2", "19.54 for 19.75", &["formula:8.2/"]),
    ("tables 22 and 25", "8 B a packet; the cells say 12", &["overhead:25/"]),
    ("table 23", "21.05 is no burst's figure with 12 B", &["theoretical:23/"]),
    ("tables 25 and 26", "reads whose rows are writes", &["caption-rows:25", "caption-rows:26"]),
    ("table 26", "62 % by choice of the EDMA that does not matter", &["claim:26/"]),
    ("10GbE", "steps of 1500 that begin with one of 1000", &["claim:10gbe/"]),
    ("units", "MBPS beside Mbps", &["unit-case:MBPS and Mbps"]),
    ("section 1.1", "DDR spelled out as dual instead of double data rate", &[]),
    ("section 6.3.1", "a recommendation for `both PCIe and PCIe1`", &[]),
    ("section 5.2", "announces the names of TC0 to TC13, and no list follows", &["reference-missing:5.2/"]),
];

/// What the audit says besides: form, true as printed, and of no consequence to a number.
const FORM: &[&str] = &[
    "rounding:",
    "unit-spelling:",
    "reference-missing:",
    "citation-unlisted:",
    "announced:",
    "item-twice:",
    "figure-rate:",
    "document-title:",
    "formula-cell:",
    "quotient:11/",
    "theoretical:2/DSP L2",
];

/// What may well be right in print: marks that lost their place on the way into our source.
const DOUBTFUL: &[&str] = &["mark:17", "mark:21"];

fn all() -> Vec<String> {
    let chip = soc::load(include_str!("../../../../../boards/socs/k2h.toml")).unwrap();
    run(&keystone2(), Some(&OfModel(&chip))).into_iter().map(|finding| finding.id).collect()
}

#[test]
fn the_errata_that_a_rule_can_see_are_found() {
    let found = all();
    let is_found = |ids: &[&str]| ids.iter().all(|id| found.iter().any(|found| found.starts_with(id)));
    for (place, what, ids) in ERRATA {
        assert!(ids.is_empty() || is_found(ids), "{place}: {what}");
    }
    let count = ERRATA.iter().filter(|(.., ids)| !ids.is_empty()).count();
    assert_eq!((count, ERRATA.len()), (34, 36));
}

#[test]
fn every_finding_is_an_erratum_or_form_and_few_are_doubtful() {
    let known = |id: &str| {
        let of_errata = ERRATA.iter().flat_map(|(.., ids)| ids.iter());
        of_errata.chain(FORM).any(|start| id.starts_with(start))
    };
    let doubtful: Vec<String> = all().into_iter().filter(|id| !known(id)).collect();
    assert_eq!(doubtful, DOUBTFUL);
}

/// Equal times of small transfers are the tick of the clock that took them: no finding, and no stated noise is needed.
#[test]
fn nothing_is_made_of_what_the_clock_explains() {
    assert_eq!(keystone2().noise_percent, None);
    assert!(ids(&keystone2()).iter().all(|id| !id.starts_with("constant-time")));
}
