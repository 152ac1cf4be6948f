//! What the audit says of the KeyStone II guide, by identifier.

use super::{ids, keystone2, shown};
use crate::audit::{OfModel, run};
use crate::soc;

/// The findings, gravest first.
const FINDINGS: &[&str] = &[
    "formula:1/EDMA4(Single TC)/1",
    "formula-cell:1/EDMA4(Single TC)/1",
    "formula:2/DSP L2/1",
    "formula:8.2/25Gbps x (8/9) x 64 / (64+8) = 19.54Gbps",
    "quotient:11/Total Transfer Efficiency/1",
    "quotient:11/Total Transfer Efficiency/2",
    "quotient:11/Total Transfer Efficiency/3",
    "time-falls:20/128/6",
    "caption-text:19/\"Table 19 shows an NREAD transaction using a PHY line rate of 5 Gbps in 1x, 2x and 4x modes\"",
    "caption-list:5.2.5/figure 6",
    "unit-missing:4",
    "unit-case:MBPS and Mbps",
    "legend:5",
    "fewer-lanes-faster:20/128/6",
    "copy:16",
    "prefix:7.1/tables 16, 17, 20",
    "claim:1/C66x Core/\"A CorePac sustains 128 bits of load/store per cycle to L1D and handles up to 16 GB/second\"",
    "claim:1/EDMA0(Single TC)/\"High speed masters connect to slaves over 256-bit data buses at DSP/3\"",
    "claim:1/EDMA4(Single TC)/\"High speed masters connect to slaves over 256-bit data buses at DSP/3\"",
    "claim:26/\"Read throughput is not impacted by the selection of the EDMA channel controller\"",
    "factor:1/ARM A15 Core/1/\"The external interface uses the AXI protocol configured to 128-bit data width\"",
    "column-text:16/\"L2 memory endpoints were used for both input and output data\"",
    "column-text:20/\"L2, MSMC and DDR3 memory endpoints are used for both input and output data\"",
    "caption-twice:19",
    "caption-rows:25",
    "caption-rows:26",
    "document-number:2.2/SPRUGW0",
    "copied-row:11/Total Transfer Efficiency",
    "overhead:20/\"16 Bytes of overhead is added for each packet\"",
    "overhead:25/\"For each packet the overhead (8 bytes) must be taken into account; reads return 16 B, 32 B and 64 B (table 22)\"",
    "rounding:8/10 x 4 x (8/9) = 35.5Gbps",
    "rounding:8.2/25Gbps x (8/9) x 256 / (256+8) = 21.54Gbps",
    "rounding:8.2/25Gbps x (8/9) x 32 / (32+8) = 17.77Gbps",
    "claim:10gbe/\"Packet sizes are coarser (1500 bytes) for the larger packets\"",
    "name-kind:5.2.5/\"DDR3B SRAM\"",
    "unit-spelling:MB/s and MBPS",
    "unit-spelling:Mb/s and Mbps",
    "reference-missing:5.2/\"TC0 through TC13 correlate to the Data Manual nomenclature in the following way:\"",
    "reference-missing:5.2.3/\"shows the measured aggregate throughput of the TCs\"",
    "reference-missing:6.3/\"is captured in and .\"",
    "reference-missing:7.1/\"shows the throughput of a DirectIO operation for\"",
    "citation-unlisted:2.1/SPRUGW0",
    "citation-unlisted:2.4/SPRUGW7",
    "announced:6.1/announced subsections",
    "announced:8.1/announced subsections",
    "item-twice:5.4/\"Use block sizes larger than TC bus width size\"",
    "figure-rate:7.1/figure 16",
    "figure-rate:7.1/figure 18",
    "figure-rate:7.2.1/figure 20",
    "caption-parts:1/IDMA",
    "caption-corner:2",
    "mark:17",
    "mark:21",
    "value-twice:7/Aggregate throughput of TCs fired (MBPS)/2",
    "value-twice:20/2048",
    "footnote-row:1/footnote 2",
    "document-title:5.3.2/SPRUGW7 and SPRUHJ6",
    "paragraph-twice:2.2/\"Within each CorePac, there is an ...\"",
];

#[test]
fn the_findings_are_these() {
    assert_eq!(ids(&keystone2()), FINDINGS);
}

#[test]
fn a_copy_names_its_donor_where_the_text_says_what_was_measured() {
    let findings = run(&keystone2(), None);
    let copy = findings.iter().find(|finding| finding.id == "copy:16").unwrap();
    assert!(copy.arithmetic.ends_with("memory was L2: the other columns have theirs from these"), "{copy}");
}

#[test]
fn the_chip_description_adds_what_its_widths_and_clocks_contradict() {
    let chip = soc::load(include_str!("../../../../../boards/socs/k2h.toml")).unwrap();
    let findings = run(&keystone2(), Some(&OfModel(&chip)));
    let added: Vec<&str> =
        findings.iter().map(|finding| finding.id.as_str()).filter(|id| !FINDINGS.contains(id)).collect();
    assert_eq!(added, BY_THE_CHIP, "{}", shown(&findings));
    let l2 = findings.iter().find(|finding| finding.id == "theoretical:2/DSP L2/1").unwrap();
    assert!(l2.arithmetic.contains("19200; printed 16000"), "{l2}");
}

/// What the description of the 66AK2H adds. HyperLink's 18.71, 16.16 and 12.69 are bursts of 64, 32 and 16 B with 12 B of
/// overhead; 21.05 is no such burst, and 128 B give 20.32.
const BY_THE_CHIP: &[&str] = &[
    "theoretical:2/DSP L2/1",
    "theoretical:23/Write to L2/1",
    "theoretical:23/Write to MSMC/1",
    "theoretical:23/Write to DDR3/1",
    "rounding:25/Write to L2/1",
    "rounding:25/Write to L2/2",
];
