//! `linerate sim` from outside: every example shows what it says, the same seed gives the same run, errors name their
//! place. Times are virtual, so goodput may be asserted.

mod samples;

use linerate_lab::scenario::{self, file::Side, load, outcome::Outcome, verdict};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An example with some keys changed, run.
fn run(name: &str, sets: &[&str]) -> Outcome {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let path = root().join("examples/sim").join(format!("{name}.toml"));
    scenario::simulate(&load::load(&path, &sets).unwrap(), None)
}

fn mbps(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput_bps() / 1e6
}

/// Whether the goodput in Mbit/s lies in the range and the verdict names this part.
fn check(name: &str, sets: &[&str], range: std::ops::Range<f64>, bottleneck: &str) -> Outcome {
    let outcome = run(name, sets);
    let verdict = verdict::of(&outcome, &outcome.flows[0]);
    let found = mbps(&outcome);
    assert!(range.contains(&found), "{name} {sets:?}: {found} Mbit/s instead of {range:?}; {verdict:?}");
    assert_eq!(verdict.bottleneck, bottleneck, "{name} {sets:?}: {verdict:?}");
    outcome
}

/// Exit code, standard output and standard error of the program.
fn program(args: &[&str]) -> (Option<i32>, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).current_dir(root()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

/// A scenario of a text, run.
fn run_text(text: &str) -> Outcome {
    scenario::simulate(&load::parse(text).unwrap(), None)
}

/// A file that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("linerate-sim-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn loss_on_a_lan_costs_its_share_and_no_more() {
    let outcome = check("sending-with-loss", &[], 85.0..94.2, "the link");
    assert!(outcome.paths.server.stats.lost > 300);
    assert!(outcome.flows[0].longest_stall.as_millis() < 300, "{:?}", outcome.flows[0].longest_stall);
    check("minimal", &["world.duration=5 s"], 70.0..94.2, "the link");
}

#[test]
fn a_ring_below_the_window_loses_and_one_above_it_does_not() {
    check("minimal", &["link.jitter=10 s"], 0.0..1.0, "jitter");
    let small = check("small-ring", &[], 1.0..400.0, "the receive ring");
    assert!(small.hosts.client.nic.rx_ring_full > 100);
    let large = run("small-ring", &["client.rx-ring=64"]);
    assert_eq!(large.hosts.client.nic.rx_ring_full, 0);
    assert!(mbps(&large) > 2.0 * mbps(&small), "{} after {}", mbps(&large), mbps(&small));
}

#[test]
fn small_windows_bound_the_rate_by_the_round_trip() {
    check("small-window", &[], 5.0..12.0, "the receive buffer");
    check("small-window", &["client.tcp.receive-buffer=64 KiB"], 88.0..94.2, "the link");
    check("long-fat-pipe", &[], 15.0..21.0, "the send buffer");
}

#[test]
fn a_bloated_queue_delays_and_a_managed_one_does_not() {
    let bloated = check("bufferbloat", &[], 8.5..9.5, "the link");
    assert!(verdict::of(&bloated, &bloated.flows[0]).advice.contains("codel"));
    let managed = check("codel", &[], 9.0..9.5, "the link");
    let mean = |outcome: &Outcome| outcome.flows[0].rtt.unwrap()[1].as_secs_f64();
    assert!(mean(&bloated) > 5.0 * mean(&managed), "{} and {}", mean(&bloated), mean(&managed));
    assert!(managed.paths.client.stats.marked > 10);
    assert_eq!(managed.paths.client.stats.queue_full + managed.paths.client.stats.codel_dropped, 0);
    assert_eq!(managed.flows[0].info.unwrap().retransmits, 0);
}

#[test]
fn a_black_hole_is_left_and_a_router_that_speaks_costs_nothing() {
    let silent = check("black-hole", &[], 30.0..46.0, "path MTU");
    assert!(silent.paths.server.stats.too_long > 0);
    assert!(silent.flows[0].info.unwrap().path_mtu <= 1_400);
    let told = run("black-hole", &["from-server.too-long-is-told=true", "world.duration=5 s"]);
    assert!(told.flows[0].longest_stall < silent.flows[0].longest_stall);
    assert_eq!(told.flows[0].info.unwrap().path_mtu, 1_400);
}

#[test]
fn an_outage_ends_when_it_ends() {
    let outcome = check("outage", &[], 10.0..20.0, "a stall");
    let stall = outcome.flows[0].longest_stall.as_secs_f64();
    assert!((1.9..4.0).contains(&stall), "{stall}");
}

#[test]
fn queues_with_a_processor_each_carry_more_and_flows_may_change_them() {
    let name = "several-queues";
    let four = run(name, &[]);
    assert_eq!(four.flows.iter().filter(|flow| flow.received > 10_000_000).count(), 4);
    let letters = |outcome: &Outcome| -> u64 {
        outcome.hosts.server.queues.iter().map(|queue| queue.letters.packets).sum()
    };
    assert!(letters(&four) > 1_000, "half of the time flows come in where they do not live");
    assert_eq!(letters(&run(name, &["change=[]"])), 0);
    let total = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.received).sum::<u64>();
    let cost = "server.processor={ packet = \"20 us\", kilobyte = \"16 us\" }";
    let one = run(name, &[cost, "server.queues=1", "change=[]"]);
    let several = run(name, &[cost, "change=[]"]);
    assert!(total(&several) > total(&one) * 3 / 2, "{} after {}", total(&several), total(&one));
    let texts = [0, 1].map(|_| program(&["sim", "examples/sim/several-queues.toml", "--queues", "3"]).1);
    assert_eq!(texts[0], texts[1]);
    assert!(
        texts[0].contains("client: 3 queues with ") && texts[0].contains("server: 3 queues with "),
        "{}",
        texts[0]
    );
}

#[test]
fn what_waits_for_acknowledgements_or_a_processor_is_named() {
    check("nagle", &[], 0.3..0.5, "Nagle and delayed acknowledgements");
    check("nagle", &["client.tcp.no-delay=true"], 5.0..8.0, "the sender");
    let software = check("slow-processor", &[], 100.0..300.0, "the server's processor");
    assert!(verdict::of(&software, &software.flows[0]).advice.contains("checksum"));
    check("slow-processor", &["server.offload=tx-checksum,rx-checksum"], 900.0..945.0, "the link");
}

#[test]
fn a_scenario_may_come_by_standard_input() {
    let file = "examples/sim/small-window.toml";
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["sim", "-", "--json"]).stdin(fs::File::open(root().join(file)).unwrap());
    let run = command.output().unwrap();
    assert_eq!(String::from_utf8(run.stdout).unwrap(), program(&["sim", file, "--json"]).1);
}

#[test]
fn a_slow_reader_is_named() {
    let outcome = check("slow-reader", &[], 7.5..8.5, "the reader");
    assert_eq!(outcome.flows[0].info.unwrap().retransmits, 0);
    assert_eq!(outcome.flows[0].flow.from, Side::Server);
}

#[test]
fn a_send_buffer_bounds_what_is_under_way() {
    let check = |size: &str, most: f64, rtt_s: f64| {
        let outcome = run_text(&format!(
            "link = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\nworld.duration = \"2 s\"\n\
             [server.tcp]\nsend-buffer = \"{size}\"\n"
        ));
        let flow = &outcome.flows[0];
        assert!(flow.mean.in_flight <= most + 1.0, "{size}: {} under way", flow.mean.in_flight);
        assert!(mbps(&outcome) <= most * 8.0 / rtt_s / 1e6, "{size}: {} Mbit/s", mbps(&outcome));
        let verdict = verdict::of(&outcome, flow);
        assert_eq!(verdict.bottleneck, "the send buffer", "{verdict:?}");
        // What the text computes is what was measured, within a tenth.
        let bound: f64 =
            verdict.because.split(" are ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let unit = if verdict.because.contains("kbit/s") { 1e-3 } else { 1.0 };
        assert!((bound * unit / mbps(&outcome) - 1.0).abs() < 0.1, "{}: {verdict:?}", mbps(&outcome));
    };
    check("2 KiB", 2_048.0, 0.01);
    check("20 KiB", 20_480.0, 0.01);
    check("100 KiB", 102_400.0, 0.01);
}

#[test]
fn nonsense_is_refused_and_extremes_are_told_truly() {
    let total = run_text("link.loss = \"100 %\"\nworld.duration = \"5 s\"\n");
    assert_eq!(verdict::of(&total, &total.flows[0]).bottleneck, "the path");
    let text = linerate_cli::sim::text::text(&total);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(!linerate_cli::sim::json::json(&total).contains("NaN"));
    let late = run_text("world.duration = \"1 s\"\n[[flow]]\nstart = \"2 s\"\n");
    assert_eq!(verdict::of(&late, &late.flows[0]).bottleneck, "the scenario");
    let mut changed = run("minimal", &["flow.0.bytes=1 MiB", "link.loss=0 %"]);
    assert_eq!(changed.flows.remove(0).received, 1 << 20);
    // Right only together: a queue needs a rate.
    run("slow-reader", &["from-client.queue=64 KiB", "world.duration=100 ms", "from-client.rate=1 Gbit/s"]);
}

#[test]
fn a_lucky_transfer_gets_no_more_than_the_ideal() {
    for seed in 1..30 {
        let text = format!(
            "world.seed = {seed}\nlink = {{ rate = \"1 Mbit/s\", loss = \"30 %\" }}\n[[flow]]\nbytes = \"40 KiB\"\n"
        );
        let outcome = run_text(&text);
        let ideal = outcome.ideal_bps(Side::Server).unwrap();
        assert!(outcome.flows[0].goodput_bps() <= ideal, "{text}: {} of {ideal}", mbps(&outcome));
    }
}

#[test]
fn segments_without_timestamps_have_no_room_for_them() {
    for side in ["client", "server"] {
        let text =
            format!("{side}.timestamps = false\nlink.rate = \"100 Mbit/s\"\nworld.duration = \"2 s\"\n");
        let outcome = run_text(&text);
        let ideal = outcome.ideal_bps(Side::Server).unwrap();
        // 1,460 bytes of each 1,538.
        assert!((ideal / 1e6 - 94.93).abs() < 0.01, "{side}: {ideal}");
        let share = outcome.flows[0].goodput_bps() / ideal;
        assert!((0.98..=1.0).contains(&share), "{side}: {share}");
    }
}

#[test]
fn a_queue_in_time_follows_the_rate() {
    let most = |change: &str| {
        let text = format!(
            "link = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\nfrom-server.queue = \"20 ms\"\nworld.duration = \"4 s\"\n\
             [[change]]\nat = \"10 ms\"\nfrom-server = {{ {change} }}\n"
        );
        run_text(&text).paths.server.stats.queue_max_bytes
    };
    // 20 ms of 10 Mbit/s are 25,000 bytes.
    assert!(most("rate = \"10 Mbit/s\"") <= 25_000, "{}", most("rate = \"10 Mbit/s\""));
    assert_eq!(most("rate = \"10 Mbit/s\""), most("rate = \"10 Mbit/s\", queue = \"20 ms\""));
    assert!(most("delay = \"5 ms\"") > 100_000);
}

#[test]
fn samples_of_the_page_are_true() {
    assert!(samples::check_page(&root().join("docs/sim.md"), program) >= 3);
}

#[test]
fn every_example_runs_and_is_described() {
    let about = fs::read_to_string(root().join("docs/sim.md")).unwrap();
    for entry in fs::read_dir(root().join("examples/sim")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(about.contains(&name), "docs/sim.md does not say what {name} shows");
        let scenario = load::load(&path, &["world.duration=3 s".to_owned()]).unwrap();
        let outcome = scenario::simulate(&scenario, Some(3));
        assert!(outcome.flows.iter().all(|flow| flow.received > 0 && flow.error.is_none()), "{name}");
    }
}

#[test]
fn a_seed_replays_and_another_does_not() {
    let sets = ["--set", "world.duration=1 s"];
    let text = |seed: &str| {
        let args = ["sim", "examples/sim/minimal.toml", "--seed", seed];
        let (code, out, errors) = program(&[&args[..], &sets[..]].concat());
        assert_eq!(code, Some(0), "{errors}");
        out
    };
    assert_eq!(text("5"), text("5"));
    assert_ne!(text("5"), text("6"));
    let (code, _, errors) = program(&["sim", "examples/sim/minimal.toml", "--seed", "-1"]);
    assert!(code == Some(2) && errors.contains("expected a whole number from 0 to"), "{errors}");
    assert!(!errors.contains("-- -1"), "{errors}");
}

#[test]
fn json_plot_and_capture_are_well_formed() {
    let plot = Scratch::new("plot.svg", "");
    let capture = Scratch::new("capture.pcapng", "");
    let scenario =
        Scratch::new("short.toml", "[link]\nrate = \"10 Mbit/s\"\n[[flow]]\nbytes = \"100 KiB\"\n");
    let (code, out, errors) =
        program(&["sim", scenario.path(), "--json", "--plot", plot.path(), "--pcap", capture.path()]);
    assert_eq!(code, Some(0), "{errors}");
    let value: Value = serde_json::from_str(&out).unwrap();
    let flow = &value["flows"][0];
    assert_eq!(flow["received"], 102_400);
    assert_eq!(flow["complete"], true);
    assert_eq!(flow["closed"], "Done");
    assert!(flow["goodput"].as_f64().unwrap() < flow["ideal"].as_f64().unwrap() * 1.01);
    let svg = fs::read_to_string(&plot.0).unwrap();
    for title in ["goodput", "congestion window", "round-trip time", "queue"] {
        assert!(svg.contains(title), "no panel {title:?}");
    }
    assert!(svg.trim_end().ends_with("</svg>"));
    // A section header block (RFC draft pcapng, section 4.1) and at least the frames of the payload.
    let bytes = fs::read(&capture.0).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(bytes.len() > 102_400);
}

#[test]
fn no_output_overwrites_the_scenario_or_another() {
    let text = "world.duration = \"1 ms\"\n";
    let scenario = Scratch::new("self.toml", text);
    let check = |args: &[&str], said: &str| {
        let (code, _, errors) = program(&[&["sim", scenario.path()], args].concat());
        assert_eq!(code, Some(2), "{args:?}: {errors}");
        assert!(errors.contains(said), "{said:?} for {args:?} in {errors}");
        assert_eq!(fs::read_to_string(&scenario.0).unwrap(), text, "{args:?}");
    };
    for option in ["--pcap", "--plot", "--trace"] {
        let said = format!("invalid value '{}' for '{option}': expected a file other than", scenario.path());
        check(&[option, scenario.path()], &said);
    }
    let both = std::env::temp_dir().join(format!("linerate-sim-{}-both", std::process::id()));
    let both = both.to_str().unwrap();
    check(&["--pcap", both, "--plot", both], "for '--plot': expected a file other than that of --pcap");
    assert!(!Path::new(both).exists());
}

#[test]
fn exit_codes() {
    let check = |args: &[&str], code: i32, said: &[&str]| {
        let (found, _, errors) = program(&[&["sim"], args].concat());
        assert_eq!(found, Some(code), "{args:?}: {errors}");
        said.iter().for_each(|words| assert!(errors.contains(words), "{words:?} for {args:?} in {errors}"));
    };
    let bad = Scratch::new("bad.toml", "[link]\nrate = \"100 Mbit/s\"\nqueue = \"deep\"\n");
    check(&[], 2, &["FILE.toml"]);
    check(&["no/such.toml"], 2, &["cannot read no/such.toml"]);
    check(&[bad.path()], 2, &["line 3, column 9: queue: \"deep\" is no queue; expected a size such as"]);
    let minimal = "examples/sim/minimal.toml";
    let narrow = ["world.ip=6", "world.mtu=576"];
    check(
        &[minimal, "--set", narrow[0], "--set", narrow[1]],
        2,
        &["'world.mtu=576' for '--set': expected 1280 or more with ip = 6"],
    );
    check(&[minimal, "--set", "link.speed=3"], 2, &["'link.speed=3' for '--set'", "unknown field `speed`"]);
    check(
        &[minimal, "--set", "link.delay=soon"],
        2,
        &["'link.delay=soon' for '--set'", "starts with no number"],
    );
    check(
        &[minimal, "--set", "world.duration=1 ms", "--plot", "/no/such/dir/x.svg"],
        1,
        &["cannot write /no/such/dir/x.svg"],
    );
}
