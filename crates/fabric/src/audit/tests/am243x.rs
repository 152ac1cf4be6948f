//! What the audit says of two pages on other chips: drivers on AM64x and AM243x, and on AM263x, measured by the cycle.

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

fn am263x() -> Guide {
    load(include_str!("../../../../../boards/guides/am263x.toml")).unwrap()
}

/// The findings on a page that was set down last. It changed two rules: falling rates of a table are one finding (20 before),
/// and a value that is rounded to tens is a note (an error before).
const FINDINGS_263: &[&str] = &[
    // Beyond 4 KiB AES is slower by 3 %: true, and the page does not say why.
    "falls-with-size:aes-cbc/8192/1",
    "falls-with-size:aes-ecb/16384/1",
    // 7429.42 messages a second.
    "rounding:mcan/CAN FD STANDARD FORMAT/5",
];

#[test]
fn a_page_that_came_last_has_no_false_alarm() {
    let findings = run(&am263x(), None);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, FINDINGS_263, "{}", shown(&findings));
}

#[test]
fn their_times_are_whole_cycles_of_their_cores() {
    for (guide, tick, tables) in [
        (am243x(), "1.25 ns", &["aes-cbc", "sha"][..]),
        (am263x(), "2.5 ns", &["aes-cbc", "aes-ecb", "aes-cmac", "sha", "hmac-sha"]),
    ] {
        for id in tables {
            let source = Noise::of(&guide, guide.table(id).unwrap()).source();
            assert!(source.contains(&format!("grid of {tick}")), "{id}: {source}");
        }
    }
}
