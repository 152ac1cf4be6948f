//! The ladder on a Linux device: `linerate serve` on a TAP device or a packet socket in a namespace of its own, with settings that have the same
//! effect as a rung, and an FTP client of the kernel's side.
//!
//! What work costs here is calibrated before ([`super::calibrate`]), and the rungs are predicted from that. Rungs that no
//! setting stands for are left out and named.

use super::calibrate::{self, Calibration, Trial};
use super::climb::{Climb, Expected, Found, Row, printed};
use super::knobs::{Knobs, SUMS};
use super::state::Direction;
use super::transfer::{Round, transfer};
use crate::measure::device::Device;
use crate::measure::place;
use crate::measure::rounds::alternate;
use crate::measure::statistics::spread;
use crate::progress::Progress;
use crate::quantity::share;
use crate::schema::Record;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// How it is measured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program whose `serve` is run.
    pub program: PathBuf,
    /// What it runs on.
    pub device: Device,
    /// How often each rung is run; rungs alternate.
    pub rounds: usize,
    /// Bytes of a transfer.
    pub bytes: u64,
}

/// A rung as settings of the server.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The rung's name.
    pub name: &'static str,
    /// What stands for it.
    pub title: &'static str,
    /// The form that it is changed from.
    pub from: Option<&'static str>,
    /// The settings.
    pub knobs: Knobs,
    /// The tuning under which the document prints it.
    published: Option<&'static str>,
}

/// One form from another.
const fn form(name: &'static str, title: &'static str, from: Option<&'static str>, knobs: Knobs) -> Form {
    Form { name, title, from, knobs, published: None }
}

/// All forms, in their order.
pub fn forms() -> Vec<Form> {
    use Direction::{Receiving, Sending};
    let sending = |kib, offload| Knobs::new(Sending, kib, offload);
    let receiving = |kib, offload| Knobs::new(Receiving, kib, offload);
    let (narrow, wide) = (Some(8), Some(64));
    let small = Knobs { mss: Some(512), ..sending(narrow, "none") };
    let rare = Knobs { ack_every: Some(10), ..receiving(wide, "none") };
    let jumbo = |knobs| Knobs { mtu: 9_000, ..knobs };
    let unscaled = Knobs { scales: false, ..sending(None, "all") };
    let sums = "checksums by the device";
    let mut forms = vec![
        form("as-ported", "segments of 512 bytes, 8 KiB buffers", None, small),
        form("mss-writes", "full segments", Some("as-ported"), sending(narrow, "none")),
        form("buffers-64k", "64 KiB buffers", Some("mss-writes"), sending(wide, "none")),
        form("checksum-offload", sums, Some("buffers-64k"), sending(wide, SUMS)),
        form("segmentation", "super-segments of 64 KiB", Some("checksum-offload"), sending(wide, "all")),
        form("jumbo", "MTU 9000", Some("checksum-offload"), jumbo(sending(wide, SUMS))),
        form("narrow-window", "buffers grow, the client's window does not scale", None, unscaled),
        form("window-scaling", "the client's window scales", Some("narrow-window"), sending(None, "all")),
        form("rx-as-ported", "8 KiB buffers", None, receiving(narrow, "none")),
        form("rx-buffers-64k", "64 KiB buffers", Some("rx-as-ported"), receiving(wide, "none")),
        form("rx-ack-every-10", "an ACK every 10", Some("rx-buffers-64k"), rare),
        form("rx-checksum-offload", sums, Some("rx-buffers-64k"), receiving(wide, SUMS)),
        form("rx-coalescing", "frames of 64 KiB", Some("rx-checksum-offload"), receiving(wide, "all")),
        form("rx-jumbo", "MTU 9000", Some("rx-checksum-offload"), jumbo(receiving(wide, SUMS))),
    ];
    for form in &mut forms {
        match form.name {
            "as-ported" | "rx-as-ported" => form.published = Some("as ported"),
            "buffers-64k" | "rx-buffers-64k" => form.published = Some("64 KiB buffers"),
            _ => {}
        }
    }
    forms
}

/// Rungs without a form, and why.
const LEFT_OUT: [(&str, &str); 6] = [
    (
        "no-yield, driver, owned-payload",
        "the server never gives way after a write, copies nothing, and the driver is the kernel's",
    ),
    ("optimized, busy", "one program is one build"),
    ("rx-small-heap", "the least memory of serve, 4 MiB, holds the buffers of any one connection"),
    ("ack-every-10", "the client is the kernel; receiving, the server's own acknowledgements stand for it"),
    ("pacing-0 to pacing-3", "the device has no interrupts to pace"),
    (
        "far",
        "nothing here delays packets: the window without scaling is tried at the device's own round trip",
    ),
];

/// Whether rungs can be run on these devices here: to be asked before the first.
///
/// # Errors
/// No root, or a program that is missing.
pub fn ready(devices: &[Device]) -> Result<()> {
    let programs: &[&str] = if devices.contains(&Device::Packet) { &["curl", "ethtool"] } else { &["curl"] };
    place::ready(programs)
}

/// Runs the forms of these names, all if there are none, on one device. Asks [`ready`] nothing.
///
/// # Errors
/// No root, a server that does not start, or a transfer that is not whole.
pub fn climb(
    settings: &Settings,
    names: &[String],
    figures: &[Record],
    progress: &mut Progress,
) -> Result<Climb> {
    let wanted = |form: &Form| names.is_empty() || names.iter().any(|name| name == form.name);
    let chosen: Vec<Form> = forms().into_iter().filter(wanted).collect();
    let calibration = calibrate(settings, &chosen, progress)?;
    // All are predicted before the first is run.
    let expected: Vec<Expected> = chosen
        .iter()
        .map(|form| calibration.predict(&form.knobs).map_err(anyhow::Error::msg))
        .collect::<Result<_>>()?;
    let results = alternate(&chosen, settings.rounds, |round, form| {
        progress.begin(&format!("{}: {}, round {}", settings.device.title(), form.name, round + 1));
        // What limits it is looked at while the first round runs: the looking costs some time.
        let found = measure(settings, &form.knobs, round == 0);
        progress.done(1);
        found.with_context(|| format!("rung {}", form.name))
    })?;
    let rows = chosen.iter().zip(expected).zip(results);
    let rows: Vec<Row> =
        rows.map(|((form, expected), rounds)| row(settings, form, expected, &rounds, figures)).collect();
    let notes = costs_told(&rows)
        .into_iter()
        .chain(kept_told(&rows))
        .chain(short_told(&rows))
        .chain(rows.iter().filter_map(why_missed));
    let notes = notes.chain(calibration.notes()).collect();
    Ok(Climb {
        board: settings.device.name().to_owned(),
        title: format!("On a {}", settings.device.title()),
        rows,
        left_out: LEFT_OUT.map(|(name, why)| (name.to_owned(), why.to_owned())).to_vec(),
        notes,
    })
}

/// How many transfers are made for these rungs before they are run.
pub fn trials(names: &[String]) -> usize {
    let wanted = |form: &Form| names.is_empty() || names.iter().any(|name| name == form.name);
    let chosen: Vec<Knobs> = forms().into_iter().filter(wanted).map(|form| form.knobs).collect();
    calibrate::trials(&chosen).len()
}

fn measure(settings: &Settings, knobs: &Knobs, looks: bool) -> Result<Round> {
    transfer(&settings.program, settings.device, knobs, settings.bytes, looks)
}

/// Tries what the model needs to know of this machine, with settings that are no rung.
fn calibrate(settings: &Settings, forms: &[Form], progress: &mut Progress) -> Result<Calibration> {
    let knobs: Vec<Knobs> = forms.iter().map(|form| form.knobs).collect();
    let tried = calibrate::trials(&knobs).into_iter().map(|knobs| {
        progress.begin(&format!("{}: calibration, {}", settings.device.title(), knobs.words()));
        let found = measure(settings, &knobs, false).context("calibration")?;
        progress.done(1);
        let Round { megabytes, load, kept, client_load, .. } = found;
        Ok(Trial { knobs, megabytes, load, kept, client_load })
    });
    let tried: Vec<Trial> = tried.collect::<Result<_>>()?;
    Calibration::of(&tried).map_err(anyhow::Error::msg)
}

/// A processor that is busy for such a part of the time is the limit.
const BUSY: f64 = 0.95;
/// A server that others keep from the cores for such a part of the time is told of.
const KEPT: f64 = 0.1;

fn row(settings: &Settings, form: &Form, expected: Expected, rounds: &[Round], figures: &[Record]) -> Row {
    // The round that was looked at counts only where it is the only one.
    let counted = if rounds.len() > 1 { &rounds[1..] } else { rounds };
    let median = |of: fn(&Round) -> f64| spread(counted.iter().map(of)).map(|spread| spread.median);
    let megabytes = spread(counted.iter().map(|round| round.megabytes));
    let (load, client_load) = (median(|round| round.load), median(|round| round.client_load));
    let kept = median(|round| round.kept);
    let seen = rounds.iter().find_map(|round| round.verdict.clone());
    let (limit, because) = limited(load, kept, client_load, seen);
    let rounds_said = match counted.len() {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let how = format!("FTP of {} by curl, {rounds_said}", crate::quantity::bytes(settings.bytes));
    Row {
        rung: form.name.to_owned(),
        title: form.title.to_owned(),
        from: form.from.map(str::to_owned),
        direction: form.knobs.direction,
        predicted: Some(expected),
        measured: megabytes.map(|megabytes| Found { megabytes, load, kept, limit, because, how }),
        published: printed(figures, form.knobs.direction, form.published),
        described: None,
    }
}

/// What limited a rung: a processor without idle time, else what the server's status says of the connection. A full buffer
/// behind a busy processor is what the processor makes of it, and so is one behind a server that others keep from the cores.
fn limited(
    load: Option<f64>,
    kept: Option<f64>,
    client_load: Option<f64>,
    seen: Option<(String, String)>,
) -> (String, String) {
    let busy = |load: Option<f64>| load.filter(|load| *load >= BUSY).map(|load| share(load.min(1.0)));
    let (seen, because) = seen.unwrap_or_else(|| {
        ("not seen".to_owned(), "the transfer was over before it could be looked at".to_owned())
    });
    let server = || "the server's processor".to_owned();
    let said = format!("of the time; the connection: {seen}, {because}");
    if let Some(load) = busy(load) {
        return (server(), format!("it was busy {load} {said}"));
    }
    if let Some(load) = busy(client_load) {
        return ("the client's processor".to_owned(), format!("it was busy {load} {said}"));
    }
    if let (Some(load), Some(kept)) = (load, kept.filter(|kept| *kept >= KEPT))
        && load + kept >= BUSY
    {
        let why =
            format!("it was busy {}, and others had it for another {} {said}", share(load), share(kept));
        return (server(), why);
    }
    (seen, because)
}

/// The server's processor time for a byte in ns, predicted and measured: on a machine that is busy with other things it
/// still tells whether the costs are right, when rates no longer do.
fn costs(row: &Row) -> Option<(f64, f64)> {
    let (expected, found) = (row.predicted.as_ref()?, row.measured.as_ref()?);
    let took = found.load? / found.megabytes.median * 1e3;
    (took > 0.0).then_some((expected.load / expected.megabytes * 1e3, took))
}

/// How many rungs took the server the processor time that was predicted.
fn costs_told(rows: &[Row]) -> Option<String> {
    let off: Vec<f64> =
        rows.iter().filter_map(costs).map(|(wanted, took)| (wanted / took - 1.0).abs()).collect();
    let within = off.iter().filter(|off| **off <= 0.1).count();
    let all = off.len();
    (all > 0).then(|| {
        format!("{within} of {all} predictions of the server's processor time for a byte lie within 10 % of what it took.")
    })
}

/// Why a prediction lies more than a tenth off, by what was measured beside the rate.
fn why_missed(row: &Row) -> Option<String> {
    let error = row.error().filter(|error| error.abs() > 0.1)?;
    let (expected, found) = (row.predicted.as_ref()?, row.measured.as_ref()?);
    let load = found.load?;
    let (wanted, took) = costs(row)?;
    let kept = found.kept.filter(|kept| *kept >= KEPT);
    let mut why = Vec::new();
    if (wanted / took - 1.0).abs() > 0.1 {
        why.push(format!("a byte took the server {took:.3} ns of its processor, not {wanted:.3}"));
    }
    if expected.load < 1.0 - 1e-9 && load < BUSY {
        why.push(format!(
            "{} was expected to be the limit, which is less exact than a processor",
            expected.limit
        ));
    } else if expected.load - load > 0.1 {
        let waited = if kept.is_some() { "" } else { ": it waited" };
        why.push(format!(
            "its processor was to be busy {}, and was {}{waited}",
            share(expected.load),
            share(load)
        ));
    }
    why.extend(kept.map(|kept| format!("others had its processor {} of the time", share(kept.min(1.0)))));
    if why.is_empty() {
        why.push("nothing that was measured beside it tells why".to_owned());
    }
    Some(format!("{} is {:+.0} % off: {}.", row.rung, error * 100.0, why.join("; ")))
}

/// In how many rungs others had the server's processor, where that is so in any.
fn kept_told(rows: &[Row]) -> Option<String> {
    let all: Vec<f64> = rows.iter().filter_map(|row| row.measured.as_ref()?.kept).collect();
    let kept = all.iter().filter(|kept| **kept >= KEPT).count();
    (kept > 0).then(|| {
        format!(
            "In {kept} of {} rungs others had the server's processor for more than a tenth of the time: the machine was busy with \
             something else, or the client shared a core. Rates are then lower than on an idle machine.",
            all.len()
        )
    })
}

/// What a load of more than the whole time means, where there is one.
fn short_told(rows: &[Row]) -> Option<String> {
    let loads = rows.iter().filter_map(|row| row.measured.as_ref()?.load);
    loads.into_iter().any(|load| load > 1.05).then(|| {
        "A load above 100 % has work in it that was done before the first byte and after the last: the transfer was too \
         short for its figures to be exact."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::statistics::Spread;

    fn row(predicted: (f64, f64), measured: (f64, f64)) -> Row {
        kept_row(predicted, measured, 0.0)
    }

    fn kept_row(predicted: (f64, f64), measured: (f64, f64), kept: f64) -> Row {
        let knobs = Knobs::new(Direction::Sending, Some(64), SUMS);
        let form = form("rung", "", None, knobs);
        let (megabytes, load) = predicted;
        let limit = if load < 1.0 { "the client" } else { "the server's processor" };
        let expected = Expected { megabytes, load, limit: limit.to_owned(), limits: Vec::new() };
        let settings = Settings { program: PathBuf::new(), device: Device::Tap, rounds: 1, bytes: 1 };
        let (megabytes, load) = measured;
        let round = Round { megabytes, load, kept, client_load: 0.5, verdict: None };
        super::row(&settings, &form, expected, &[round], &[])
    }

    #[test]
    fn a_busy_processor_is_the_limit() {
        let seen = || Some(("the send buffer".to_owned(), "it was full".to_owned()));
        let check = |server: f64, kept: f64, client: f64, limit: &str, because: &str| {
            let (found, why) = limited(Some(server), Some(kept), Some(client), seen());
            assert_eq!((found.as_str(), why.as_str()), (limit, because));
        };
        check(0.5, 0.3, 0.5, "the send buffer", "it was full");
        let behind = "it was busy 97 % of the time; the connection: the send buffer, it was full";
        check(0.97, 0.0, 0.99, "the server's processor", behind);
        check(0.5, 0.5, 0.97, "the client's processor", behind);
        let shared = "it was busy 40 %, and others had it for another 56 % of the time; the connection: the send buffer, it was full";
        check(0.4, 0.56, 0.5, "the server's processor", shared);
        assert_eq!(limited(None, None, None, None).0, "not seen");
    }

    #[test]
    fn misses_are_explained_by_what_was_measured() {
        let check = |predicted, measured, part: Option<&str>| {
            let said = why_missed(&row(predicted, measured));
            match part {
                Some(part) => assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{said:?}"),
                None => assert_eq!(said, None),
            }
        };
        check((100.0, 1.0), (95.0, 1.0), None);
        check(
            (100.0, 1.0),
            (50.0, 1.0),
            Some("a byte took the server 20.000 ns of its processor, not 10.000"),
        );
        check((100.0, 1.0), (50.0, 0.5), Some("was to be busy 100 %, and was 50 %: it waited"));
        check((100.0, 0.5), (50.0, 0.25), Some("the client was expected to be the limit"));
        let shared = why_missed(&kept_row((100.0, 1.0), (50.0, 0.4), 0.55)).unwrap();
        assert_eq!(
            shared,
            "rung is +100 % off: a byte took the server 8.000 ns of its processor, not 10.000; its processor was to be busy \
             100 %, and was 40 %; others had its processor 55 % of the time."
        );
        let costs = row((100.0, 1.0), (90.0, 0.95));
        assert!(why_missed(&costs).unwrap().contains("tells why"), "{:?}", why_missed(&costs));
        let some = [kept_row((1.0, 1.0), (1.0, 0.5), 0.5), row((1.0, 1.0), (1.0, 1.0))];
        assert!(kept_told(&some).unwrap().starts_with("In 1 of 2 rungs"));
        assert_eq!(kept_told(&some[1..]), None);
        assert_eq!(short_told(&[row((1.0, 1.0), (1.0, 1.0))]), None);
        assert!(short_told(&[row((1.0, 1.0), (1.0, 1.2))]).is_some());
        let rows = [row((100.0, 1.0), (50.0, 0.5)), row((100.0, 1.0), (50.0, 1.0))];
        assert_eq!(costs_told(&rows).unwrap().split(" pred").next(), Some("1 of 2"));
        assert_eq!(costs_told(&[]), None);
        assert_eq!(
            row((1.0, 1.0), (2.0, 1.0)).measured.unwrap().megabytes,
            Spread { median: 2.0, least: 2.0, most: 2.0 }
        );
    }
}
