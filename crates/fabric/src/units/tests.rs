//! Tests of quantities: what is read, what is refused, what the arithmetic gives.

use super::*;
use proptest::prelude::*;

fn check<T: std::str::FromStr<Err = UnitError> + fmt::Display>(text: &str, expected: &str) {
    let found = match text.parse::<T>() {
        Ok(quantity) => quantity.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn text_is_read_with_its_unit() {
    check::<BytesPerCycle>("256 bit", "32 B/cycle");
    check::<BytesPerCycle>("16 B/cycle", "16 B/cycle");
    check::<Nanoseconds>("97 ns", "97 ns");
    check::<Nanoseconds>("7.8 us", "7800 ns");
    check::<Bytes>("512 B", "512 B");
    check::<Bytes>("32KiB", "32768 B");
    check::<Hertz>("1.2 GHz", "1200000000 Hz");
    check::<Hertz>(" 8e2 MHz ", "800000000 Hz");
    check::<BitsPerSecond>("3.125 Gbit/s", "3125000000 bit/s");
    check::<Ratio>("25 %", "0.25 x");
    check::<Cycles>("3 cycles @ dsp3", "3 cycles @ dsp3");
}

#[test]
fn what_is_no_quantity_is_refused_with_what_was_expected() {
    check::<Hertz>("1.2", "\"1.2\" has no unit; expected one of Hz, kHz, MHz, GHz");
    check::<Hertz>("1.2 ns", "\"ns\" does not fit here; expected one of Hz, kHz, MHz, GHz");
    check::<Hertz>(
        "fast",
        "\"fast\" starts with no number; expected a number and a unit (Hz, kHz, MHz, GHz)",
    );
    check::<Hertz>("-1 Hz", "\"-1 Hz\" is absurd; expected 1 to 1000000000000 Hz");
    check::<Hertz>("1e300 GHz", "\"1e300 GHz\" is absurd; expected 1 to 1000000000000 Hz");
    check::<Nanoseconds>("3601 s", "\"3601 s\" is absurd; expected 0 to 3600000000000 ns");
    check::<Cycles>("3 cycles", "\"cycles\" does not fit here; expected one of cycles @ the name of a clock");
    check::<Cycles>("3 ns @ a", "\"ns @ a\" does not fit here; expected one of cycles @ the name of a clock");
}

#[test]
fn arithmetic_agrees_with_the_guide() {
    let width: BytesPerCycle = "256 bit".parse().unwrap();
    assert_eq!((width * Hertz::new(6e8)).megabytes(), 19_200.0);
    assert_eq!((Bytes::new(512.0) / Nanoseconds::new(100.0)).megabytes(), 5_120.0);
    assert_eq!((Bytes::new(64.0) / BytesPerSecond::new(12.8e9)).value(), 5.0);
    let cycles: Cycles = "3 cycles @ dsp3".parse().unwrap();
    assert_eq!(cycles.at(Hertz::new(4e8)).value(), 7.5);
    assert_eq!(Bytes::new(1.0).over(Bytes::ZERO).value(), 0.0);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = text.parse::<Hertz>();
        let _ = text.parse::<Cycles>();
        let _ = text.parse::<BytesPerCycle>();
    }

    #[test]
    fn printing_and_reading_is_the_identity(value in 0.0..1e12f64) {
        let printed = Nanoseconds::new(value).to_string();
        prop_assert_eq!(printed.parse::<Nanoseconds>().unwrap().value(), value);
    }

    #[test]
    fn rate_times_time_is_the_amount(bytes in 1.0..1e9f64, rate in 1.0..1e12f64) {
        let (bytes, rate) = (Bytes::new(bytes), BytesPerSecond::new(rate));
        let back = rate * (bytes / rate);
        prop_assert!((back.over(bytes).value() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn people_read_rates_in_fitting_units() {
    for (bits, text) in [
        (8e9, "8 Gbit/s"),
        (22_222_222_222.222, "22.22 Gbit/s"),
        (1.25e6, "1.25 Mbit/s"),
        (999.96, "1000 bit/s"),
        (0.5, "0.5 bit/s"),
        (123_456e9, "123456 Gbit/s"),
    ] {
        assert_eq!(format!("{:#}", BitsPerSecond::new(bits)), text);
    }
}
