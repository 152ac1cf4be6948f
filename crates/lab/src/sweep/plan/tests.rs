//! Tests of plans: mistakes have their place, items are what the file says, and the order of work does not matter.

use super::*;
use crate::sweep::coordinator::Course;
use crate::sweep::journal::Rows;
use crate::sweep::report::Report;
use crate::sweep::table::{self, Table};
use proptest::prelude::*;

fn plan(text: &str) -> Result<Plan, String> {
    let read = |name: &str| match name {
        "base.toml" => Ok((PathBuf::from("base.toml"), "[link]\nrate = \"fast\"\n".to_owned())),
        _ => Err(format!("cannot read {name}")),
    };
    let chips = |name: &str| Err(format!("{name}: expected one of k2h"));
    Plan::parse(text, &read, &chips).map_err(|mistake| match Why::from(mistake) {
        Why::Malformed(mistake) => mistake.to_string(),
        Why::Elsewhere(what) => what,
        Why::Unreadable(why) => why.to_string(),
    })
}

const AXIS: &str = "[[axis]]\nkey = \"link.loss\"\nvalues = [\"0 %\", \"1 %\"]\n";

#[test]
fn mistakes_name_line_key_and_remedy() {
    let check = |text: &str, expected: &[&str]| {
        let found = plan(text).unwrap_err();
        for part in expected {
            assert!(found.contains(part), "{text:?}: {found:?} lacks {part:?}");
        }
    };
    check("[scenario.link]\nrate = \"fast\"\n", &["line 2", "rate", "starts with no number"]);
    check("[scenario.client]\nrx-ring = 0\n", &["line 2", "rx-ring", "expected 1 to 1048576 frames"]);
    check("title = \"x\"\n", &["expected one of [scenario], scenario-file"]);
    check("[scenario]\n", &["expected an [[axis]]"]);
    check("chip = \"z80\"\ntransfer = \"x\"\n", &["line 1", "chip", "expected one of k2h"]);
    check("chip = \"k2h\"\n", &["line 1", "expected a transfer beside it"]);
    check("scenario-file = \"base.toml\"\n", &["base.toml: line 2, column 8: rate", "starts with no number"]);
    check("scenario-file = \"none.toml\"\n", &["line 1", "cannot read none.toml"]);
    let with = |axis: &str| format!("[scenario]\n[[axis]]\n{axis}");
    check(
        &with("key = \"link.los\"\nvalues = [1]\n"),
        &["line 3", "key: link.los = 1", "unknown field `los`", "expected"],
    );
    check(
        &with("key = \"link.loss\"\nvalues = [\"1 %\", \"lots\"]\n"),
        &["line 3", "link.loss = \"lots\"", "no share"],
    );
    check(
        &with("key = \"link.delay\"\nfrom = \"1 ms\"\nto = \"2 s\"\nsteps = 3\n"),
        &["line 5", "from 'ms' to 's'", "one unit"],
    );
    check(&with("key = \"link.delay\"\nfrom = \"3 ms\"\nto = \"2 ms\"\nsteps = 3\n"), &["3 is not below 2"]);
    check(
        &with("key = \"link.delay\"\nfrom = \"0 ms\"\nto = \"2 ms\"\nsteps = 3\nscale = \"log\"\n"),
        &["above zero"],
    );
    check(&with("key = \"link.delay\"\nfrom = \"1 ms\"\nto = \"2 ms\"\n"), &["expected steps"]);
    check(
        &with("key = \"link.delay\"\nfrom = \"1 ms\"\nto = \"2 ms\"\nsteps = 1\n"),
        &["line 6", "expected 2 to"],
    );
    check(&with("key = \"link.delay\"\n"), &["expected values = [...]"]);
    check(&with("key = \"link.delay\"\nvalues = []\n"), &["line 4", "expected 1 to"]);
    check(&format!("[scenario]\n{AXIS}{AXIS}"), &["line 6", "link.loss is varied twice"]);
    check(
        &with("key = \"world.seed\"\nvalues = [1, 2]\n"),
        &["line 3", "world.seed is the item's; expected seeds = N and first-seed"],
    );
    check(&format!("seeds = 0\n[scenario]\n{AXIS}"), &["line 1", "seeds", "expected 1 seed"]);
    check(
        &format!("[scenario]\n[sample]\nmethod = \"grid\"\npoints = 3\n{AXIS}"),
        &["line 2", "expected no points"],
    );
    check(&format!("[scenario]\n[sample]\nmethod = \"random\"\n{AXIS}"), &["expected points = N"]);
    check(
        &format!("[scenario]\n[sample]\nmethod = \"sobol\"\n{AXIS}"),
        &["line 3", "unknown variant", "latin-hypercube"],
    );
    check(
        &format!("[scenario]\n{AXIS}[picture]\nx = \"link.loss\"\ny = \"link.rate\"\n"),
        &["expected one of link.loss"],
    );
}

#[test]
fn items_are_points_and_seeds() {
    let text = format!("seeds = 3\nfirst-seed = 5\n[scenario.world]\nduration = \"1 ms\"\n{AXIS}");
    let plan = plan(&text).unwrap();
    assert_eq!(plan.items(), 6);
    assert_eq!(plan.settings(4), (vec![("link.loss".to_owned(), "\"1 %\"".to_owned())], 6));
    assert!(plan.header().starts_with("item,seed,link.loss_share,goodput_bps,"), "{}", plan.header());
    assert!(plan.run(4).starts_with("4,6,0.01,"), "{}", plan.run(4));
    assert_eq!(plan.run(4), plan.run(4));
    assert_eq!(plan.failed(0, "a, b").split_once(",,,").unwrap().0, "0,5,0");
    assert!(plan.failed(0, "a, b").ends_with(",\"a, b\"\n"));
}

#[test]
fn the_first_seed_is_the_scenarios_unless_another_is_asked_for() {
    let check = |first: &str, scenario: &str, expected: [u64; 2]| {
        let plan = plan(&format!("seeds = 2\n{first}[scenario.world]\n{scenario}{AXIS}")).unwrap();
        assert_eq!([0, 1].map(|item| plan.settings(item).1), expected, "{first}{scenario}");
    };
    check("", "", [1, 2]);
    check("", "seed = 7\n", [7, 8]);
    check("", "seed = \"18446744073709551615\"\n", [u64::MAX, 0]);
    check("first-seed = 5\n", "seed = 7\n", [5, 6]);
}

/// Two transfers one after the other fill the link, and no more.
#[test]
fn flows_at_different_times_get_no_more_than_the_link_has() {
    let text = format!(
        "[scenario]\nworld.duration = \"20 s\"\nlink.rate = \"10 Mbit/s\"\n[[scenario.flow]]\nbytes = \"1 MiB\"\n\
         [[scenario.flow]]\nbytes = \"1 MiB\"\nstart = \"5 s\"\n{AXIS}"
    );
    let plan = plan(&text).unwrap();
    let row = plan.run(0);
    let names = plan.header();
    let cell = |name: &str| {
        let place = names.trim().split(',').position(|other| other == name).unwrap();
        row.split(',').nth(place).unwrap().parse::<f64>().unwrap()
    };
    let expected = cell("received_bytes") * 8.0 / cell("time_s");
    assert!((cell("goodput_bps") / expected - 1.0).abs() < 1e-9, "{row}");
    assert!(cell("received_bytes") == 2_097_152.0 && cell("time_s") > 5.0, "{row}");
}

#[test]
fn ranges_of_items_are_read() {
    let check = |text: &str, expected: Result<Range<u64>, &str>| {
        assert_eq!(items(text, 10), expected.map_err(str::to_owned), "{text}");
    };
    check("0-9", Ok(0..10));
    check("3", Ok(3..4));
    let expected = "expected FIRST-LAST of the items 0 to 9";
    ["0-10", "4-3", "a", "", "-1"].into_iter().for_each(|text| check(text, Err(expected)));
}

proptest! {
    #[test]
    fn the_order_of_chunks_does_not_matter(order in Just((0u64..40).collect::<Vec<_>>()).prop_shuffle(), size in 1usize..9) {
        let text = format!("seeds = 20\n[scenario.world]\nduration = \"1 us\"\n{AXIS}");
        let plan = plan(&text).unwrap();
        let row = |item: u64| plan.failed(item, "not run");
        let straight: Rows = (0..40).map(|item| (item, row(item))).collect();
        let mut mixed = Rows::new();
        for chunk in order.chunks(size) {
            mixed.extend(chunk.iter().map(|item| (*item, row(*item))));
            // Some items come twice.
            mixed.extend(chunk.first().map(|item| (*item, row(*item))));
        }
        prop_assert_eq!(table::csv(&plan, &straight), table::csv(&plan, &mixed));
    }
}

#[test]
fn a_report_says_of_how_many_points_its_items_are() {
    let plan = plan(&format!("seeds = 3\n[scenario]\n{AXIS}")).unwrap();
    let check = |items: &[u64], expected: &str| {
        let rows: Rows = items.iter().map(|item| (*item, plan.failed(*item, "x"))).collect();
        let report = Report::new(&plan, &Table::new(&plan, &rows), &Course::default());
        assert!(report.summary().starts_with(expected), "{items:?}: {}", report.summary());
        let notes = report.grid().notes.join("\n");
        assert!(!notes.contains("medians of") && notes.contains(expected), "{notes}");
    };
    check(&[0, 1, 2, 3, 4, 5], "6 items at all of 2 points, 6 without an answer");
    check(&[1, 5], "2 items at all of 2 points");
    check(&[3, 4], "2 items at 1 of 2 points");
}
