//! The small language of formulas.

use proptest::prelude::*;

use crate::audit::expression::{ExpressionError, Quantity, evaluate, unit};
use crate::audit::show;

fn check(text: &str, value: f64, bits: i8, seconds: i8) {
    let found = evaluate(text, &|name| (name == "size").then_some(64.0)).unwrap();
    assert!((found.value - value).abs() <= 1e-9 * value.abs(), "{text} = {found:?} and not {value}");
    assert_eq!((found.bits, found.seconds), (bits, seconds), "{text}");
}

#[test]
fn formulas_have_values_in_bits_and_seconds() {
    check("128/8 * 1200/3", 6400.0, 0, 0);
    check("1 + 2 * 3 - 4 / 2", 5.0, 0, 0);
    check("2 * [(3 + 4)]", 14.0, 0, 0);
    check("8 - 4 - 2", 2.0, 0, 0);
    check("16 / 4 / 2", 2.0, 0, 0);
    check("512 * 8 * (size + 20)", 344_064.0, 0, 0);
    check("(256bits)/(8bit/byte) * (1200M/2)", 19_200e6 * 8.0, 1, -1);
    check("19200 MB/s", 19_200e6 * 8.0, 1, -1);
    check("25Gbps * (8/9) * 64 / (64+8)", 25e9 * 8.0 / 9.0 * 64.0 / 72.0, 1, -1);
    check("64 bytes / (64 bytes + 20 bytes)", 64.0 / 84.0, 0, 0);
    check("64 bits * 1600 MT/s", 12_800e6 * 8.0, 1, -1);
    check("512 B / 97 ns", 512.0 * 8.0 / 97e-9, 1, -1);
    check("2 KiB", 16_384.0, 1, 0);
}

#[test]
fn what_has_no_value_says_why() {
    let error = |text: &str| evaluate(text, &|_| None).unwrap_err();
    assert_eq!(error(""), ExpressionError::Ends);
    assert_eq!(error("3 *"), ExpressionError::Ends);
    assert_eq!(error("(3"), ExpressionError::Ends);
    assert_eq!(error("(3]"), ExpressionError::Unexpected(2));
    assert_eq!(error("3 3"), ExpressionError::Unexpected(2));
    assert_eq!(error("-3"), ExpressionError::Unexpected(0));
    assert_eq!(error("3 parsec"), ExpressionError::Unknown("parsec".into()));
    assert_eq!(error("size"), ExpressionError::Unknown("size".into()));
    assert_eq!(error("3 bits + 3 ns"), ExpressionError::Kinds);
    assert_eq!(error("3 / 0"), ExpressionError::NotFinite);
    assert_eq!(error("1.2.3"), ExpressionError::Unexpected(0));
    assert_eq!(error(&"(".repeat(1000)), ExpressionError::TooLong);
    assert_eq!(error(&"1+".repeat(1000)), ExpressionError::TooLong);
}

#[test]
fn units_keep_bits_and_bytes_apart() {
    let rate = |value| Some(Quantity { value, bits: 1, seconds: -1 });
    assert_eq!(unit("Mbps"), rate(1e6));
    assert_eq!(unit("Mb/s"), rate(1e6));
    assert_eq!(unit("MBPS"), rate(8e6));
    assert_eq!(unit("MB/s"), rate(8e6));
    assert_eq!(unit("Gbaud"), rate(1e9));
    assert_eq!(unit("furlong"), None);
}

#[test]
fn a_large_k_is_1024_before_sizes_alone() {
    let of = |value, bits, seconds| Some(Quantity { value, bits, seconds });
    for (name, value) in [("KB", 8.0 * 1024.0), ("Kbytes", 8.0 * 1024.0), ("Kb", 1024.0), ("Kbit", 1024.0)] {
        assert_eq!(unit(name), of(value, 1, 0), "{name}");
    }
    for (name, value) in [("Kbps", 1e3), ("Kb/s", 1e3), ("KB/s", 8e3), ("Kbaud", 1e3)] {
        assert_eq!(unit(name), of(value, 1, -1), "{name}");
    }
    assert_eq!(unit("KHz"), of(1e3, 0, -1));
    assert_eq!(unit("KT/s"), of(1e3, 0, -1));
    assert_eq!(unit("KiB/s"), of(8.0 * 1024.0, 1, -1));
}

#[test]
fn numbers_are_shown_with_six_digits() {
    for (value, text) in
        [(0.0, "0"), (19_753.086, "19753.1"), (67.828_125, "67.8281"), (5.0, "5"), (1e-4, "0.0001")]
    {
        assert_eq!(show(value), text);
    }
}

proptest! {
    #[test]
    fn no_expression_panics(text in "[0-9a-zA-Z+*/()\\[\\]. %-]{0,60}") {
        if let Ok(quantity) = evaluate(&text, &|_| Some(0.0)) {
            prop_assert!(quantity.value.is_finite());
        }
    }

    #[test]
    fn sums_and_products_are_those_of_numbers(a in 1u32..10_000, b in 1u32..10_000, c in 1u32..10_000) {
        let found = evaluate(&format!("{a} + {b} * ({c} - {a}) / {b}"), &|_| None).unwrap().value;
        let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
        prop_assert!((found - (a + b * (c - a) / b)).abs() < 1e-6);
    }
}
