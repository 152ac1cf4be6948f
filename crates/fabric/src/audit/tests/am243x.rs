//! What the audit says of another maker's page of another chip: drivers on AM64x and AM243x, measured by the cycle.

use super::shown;
use crate::audit::noise::Noise;
use crate::audit::run;
use crate::guide::{Guide, load};

fn am243x() -> Guide {
    load(include_str!("../../../../../boards/guides/am243x.toml")).unwrap()
}

/// The findings, each true of the page as printed.
const FINDINGS: &[&str] = &[
    // Messages to cores that were not there took no time; and 0.6 ns are half a cycle: the heading means microseconds.
    "under-a-cycle:notify/r5f0-0, a530-0/1",
    "under-a-cycle:rpmsg/r5f0-0, r5f0-1, 4/1",
    // The mean of six functions is above their maximum.
    "statistic:mathlib/sin/3",
    // 6.48 ms are printed.
    "claim:boot-sd/SBL : File read from SD Card/\"Appimage file from SD card is read into the memory (this takes 15 ms in this case)\"",
    "unit-spelling:Mb/s and Mbps",
    "item-twice:SA2UL, RSA ENCRYPT DECRYPT/\"Software/Application used : test_sa2ul_rsa\"",
    // A table of RSA keys under the heading of the curves.
    "caption-corner:pka-rsa",
    // The M4F's initialisation explains the time of a boot that loads no M4F.
    "paragraph-twice:SBL SD performance/\"Most of the time taken for ...\"",
];

#[test]
fn the_rules_find_what_is_wrong_with_another_chip_and_nothing_else() {
    let findings = run(&am243x(), None);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, FINDINGS, "{}", shown(&findings));
}

#[test]
fn its_times_are_whole_cycles_of_its_core() {
    let guide = am243x();
    for id in ["aes-cbc", "sha"] {
        let table = guide.table(id).unwrap();
        let source = Noise::of(&guide, table).source();
        assert!(source.contains("grid of 1.25 ns"), "{id}: {source}");
    }
}
