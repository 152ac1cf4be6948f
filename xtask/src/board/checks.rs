//! What a board is asked to do, by clients that were not written for it.

use super::flood::Flood;
use super::instruments;
use super::machine::Machine;
use super::network::{CLIENT, TAP};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A check; it answers with what it measured.
pub type Check = fn(&mut Machine<'_>) -> Result<String>;

/// What every board does, in this order.
pub const ALL: &[(&str, Check)] = &[
    ("the console answers", console),
    ("ping", ping),
    ("HTTP from flash and from memory", http),
    ("HTTP over IPv6", http6),
    ("FTP there and back", ftp),
    ("FTP by hand", lftp),
    ("iperf3 to the board", |m| iperf3(m, &["-n", "25M"], "end/sum_received")),
    ("iperf3 from the board", |m| iperf3(m, &["-n", "25M", "-R"], "end/sum_received")),
    ("iperf3, four streams", |m| iperf3(m, &["-n", "8M", "-P", "4"], "end/sum_received")),
    ("iperf3, UDP from the board", |m| iperf3(m, &["-u", "-b", "20M", "-t", "2", "-R"], "end/sum")),
    ("iperf3, UDP to the board", |m| iperf3(m, &["-u", "-b", "20M", "-t", "2"], "end/sum")),
    ("iperf3, the board as the client", caller),
    ("a trace of tasks, interrupts and frames", instruments::trace),
    ("time in the driver", instruments::profile),
    ("a capture", instruments::capture),
    ("an iperf3 client that is killed", killed),
    ("interrupts paced in every mode", pacing),
    ("a flood of pings leaves time to compute", flood),
    ("many short connections", connections),
    ("a SYN flood and hostile frames", hostile),
];

/// A few of them, for what is another system under the same servers.
pub const SHORT: &[(&str, Check)] = &[
    ("the console answers", console),
    ("HTTP from flash and from memory", http),
    ("FTP there and back", ftp),
    ("iperf3 to the board", |m| iperf3(m, &["-n", "25M"], "end/sum_received")),
    ("iperf3 from the board", |m| iperf3(m, &["-n", "25M", "-R"], "end/sum_received")),
    ("a capture", instruments::capture),
    ("a flood of pings leaves time to compute", flood),
];

/// The check after all others.
pub const LAST: (&str, Check) = ("nothing was lost or left over", counters);

/// Bytes of `/memory/SIZE`.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 65_536 % 251) as u8).collect()
}

pub fn url(machine: &Machine<'_>, path: &str) -> String {
    format!("http://{}{path}", machine.board.address)
}

/// A file for a client, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str, bytes: &[u8]) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("linerate-board-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have come about.
        let _gone = std::fs::remove_file(&self.0).is_ok();
    }
}

fn console(machine: &mut Machine<'_>) -> Result<String> {
    let address = machine.board.address;
    for (command, expected) in [
        ("help", "ifconfig  link and addresses"),
        ("ifconfig", &format!("address {address}/24")),
        ("ifconfig", "link up"),
        ("tasks", "network"),
        ("mem", "RAM disk 0 of"),
        ("conns", "server"),
        ("sums", "sums compared, 0 differ"),
        ("sums", "copies compared, 0 differ"),
        ("nonsense", "no command \"nonsense\""),
        ("hang foo", "hang: foo given, "),
        // ^H takes a letter back.
        ("helx\x08p", "ifconfig"),
        // The arrow to the left is no part of a command, and that up brings the last one back.
        ("me\x1b[Dm", "RAM disk 0 of"),
        ("\x1b[A", "RAM disk 0 of"),
    ] {
        let is_edited = command.contains(|c: char| c.is_control());
        let answer =
            if is_edited { machine.console.ask_edited(command)? } else { machine.console.ask(command)? };
        ensure!(answer.contains(expected), "{command} was answered by {answer:?}, expected {expected:?}");
    }
    // Every end of a line ends one, and none of the commands that come together is lost.
    let lines = "mem\r\npacing\nreserve\rconns\r\nifconfig\r\ntasks\r\nlog\r\nwatchdogs\r\n";
    let answer = machine.console.paste(lines, 8)?;
    for expected in [
        "RAM disk 0 of",
        " frames\n",
        "is left to others",
        "server",
        address,
        "network",
        "no command \"watchdogs\"",
    ] {
        ensure!(answer.contains(expected), "{lines:?} was answered by {answer:?}, expected {expected:?}");
    }
    let more = machine.console.ask("mem")?;
    ensure!(more.starts_with("heap "), "mem was answered by {more:?}, an answer was left over");
    Ok(String::new())
}

fn ping(machine: &mut Machine<'_>) -> Result<String> {
    // A full frame, and four fragments.
    for bytes in ["1472", "5000"] {
        let out = machine.client("ping", &["-c", "5", "-i", "0.2", "-s", bytes, machine.board.address])?;
        let out = String::from_utf8_lossy(&out);
        ensure!(out.contains(" 0% packet loss"), "{out}");
    }
    Ok(String::new())
}

fn http(machine: &mut Machine<'_>) -> Result<String> {
    let page = std::fs::read(Path::new("boards").join(machine.board.folder).join("files/index.html"))?;
    let got = machine.client("curl", &["-sSf", "-m", "10", &url(machine, "/")])?;
    ensure!(got == page, "index.html came with {} bytes, not as it is", got.len());
    for len in [1_usize, 65_537, 8 << 20] {
        let got = machine.client("curl", &["-sSf", "-m", "30", &url(machine, &format!("/memory/{len}"))])?;
        ensure!(got == pattern(len), "{len} bytes from memory came as {} others", got.len());
    }
    let status = "%{http_code}";
    let missing = machine
        .client("curl", &["-sS", "-m", "10", "-w", status, "-o", "/dev/null", &url(machine, "/no")])?;
    ensure!(missing == b"404", "a file that is not there: {}", String::from_utf8_lossy(&missing));
    let part = machine.client("curl", &["-sSf", "-m", "10", "-r", "5-14", &url(machine, "/")])?;
    ensure!(part == page[5..15], "a range came as {part:?}");
    Ok(String::new())
}

/// Over the link's own addresses, which need no router.
fn http6(machine: &mut Machine<'_>) -> Result<String> {
    let ifconfig = machine.console.ask("ifconfig")?;
    let local = ifconfig.split_whitespace().find_map(|word| word.strip_suffix("/64"));
    let address =
        local.filter(|address| address.starts_with("fe80:")).context("no link-local address in ifconfig")?;
    for len in [1_usize, 1_000, 1 << 20] {
        let url = format!("http://[{address}%25{TAP}]/memory/{len}");
        let got = machine.client("curl", &["-sSf", "-g", "-m", "20", &url])?;
        ensure!(got == pattern(len), "{len} bytes from memory came as {} others", got.len());
    }
    Ok(String::new())
}

fn ftp(machine: &mut Machine<'_>) -> Result<String> {
    let bytes = pattern(200_003);
    let file = Scratch::new("up", &bytes)?;
    let address = machine.board.address;
    let (user, password) = machine.board.user;
    let there = format!("ftp://{user}:{password}@{address}/ram/file");
    machine.client("curl", &["-sSf", "-m", "20", "-T", file.path(), &there])?;
    let back = machine.client("curl", &["-sSf", "-m", "20", &format!("ftp://{address}/ram/file")])?;
    ensure!(back == bytes, "{} bytes came back of {}", back.len(), bytes.len());
    let same = machine.client("curl", &["-sSf", "-m", "20", &url(machine, "/ram/file")])?;
    ensure!(same == bytes, "by HTTP {} bytes came back of {}", same.len(), bytes.len());
    // More than there is room for is refused, and what was there stays.
    let large = Scratch::new("large", &pattern(machine.board.ram_disk + 1))?;
    ensure!(
        machine.client("curl", &["-sS", "-m", "60", "-T", large.path(), &there]).is_err(),
        "{} bytes fit?",
        machine.board.ram_disk + 1
    );
    let still = machine.client("curl", &["-sSf", "-m", "20", &format!("ftp://{address}/ram/file")])?;
    ensure!(still == bytes, "the file before was lost");
    gone(machine, &format!("ftp://{user}:{password}@{address}/"))?;
    Ok(String::new())
}

/// A file that is removed takes no room any more, whichever cores' HTTP servers have just sent it.
fn gone(machine: &mut Machine<'_>, root: &str) -> Result<()> {
    for _connection in 0..8 {
        machine.client("curl", &["-sSf", "-m", "20", &url(machine, "/ram/file")])?;
    }
    machine.client("curl", &["-sSf", "-m", "20", "-Q", "-DELE /ram/file", root])?;
    let mut answer = String::new();
    for _look in 0..20 {
        answer = machine.console.ask("mem")?;
        if answer.contains("RAM disk 0 of") {
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
    bail!("the file is removed, and {answer:?}")
}

fn lftp(machine: &mut Machine<'_>) -> Result<String> {
    let put = Scratch::new("put", &pattern(50_000))?;
    let (user, password) = machine.board.user;
    let get = Scratch::new("get", b"")?;
    let script = format!(
        "set net:timeout 5; set net:max-retries 1; set cmd:fail-exit yes; set xfer:clobber yes; \
         open -u {user},{password} {}; cd ram; put {} -o a; mkdir d; mv a d/b; get d/b -o {}; rm d/b; rmdir d; ls; bye",
        machine.board.address,
        put.path(),
        get.path(),
    );
    machine.client("lftp", &["-e", &script])?;
    let got = std::fs::read(&get.0)?;
    ensure!(got == pattern(50_000), "{} bytes came back of 50,000", got.len());
    Ok(String::new())
}

/// The session of seed 000: log in, get a file, put it. There both are memory; here also with a file that stays, and its content
/// compared.
pub fn seed_000(machine: &mut Machine<'_>) -> Result<String> {
    const LEN: usize = 2_560_000;
    let (from_memory, back) = (Scratch::new("file", b"")?, Scratch::new("back", b"")?);
    let (user, password) = machine.board.user;
    let session = |commands: &str| {
        let script = format!(
            "set net:timeout 5; set net:max-retries 1; set cmd:fail-exit yes; set xfer:clobber yes; \
             open -u {user},{password} {}; {commands}; bye",
            machine.board.address
        );
        machine.client("lftp", &["-e", &script])
    };
    session(&format!("get memory/{LEN} -o {}", from_memory.path()))?;
    ensure!(std::fs::read(&from_memory.0)? == pattern(LEN), "the file from memory is another");
    session(&format!("put {} -o memory/null", from_memory.path()))?;
    session(&format!("put {} -o ram/file; get ram/file -o {}", from_memory.path(), back.path()))?;
    ensure!(std::fs::read(&back.0)? == pattern(LEN), "the file that was put came back as another");
    session("rm ram/file")?;
    // A wrong password is refused.
    let login = format!("{user}:wrong");
    let url = format!("ftp://{}/memory/1", machine.board.address);
    ensure!(machine.client("curl", &["-sS", "-m", "20", "-u", &login, &url]).is_err(), "a wrong password");
    Ok(String::new())
}

/// Runs a test and tells its rate, which depends on the emulator and its host.
fn iperf3(machine: &mut Machine<'_>, args: &[&str], sum: &str) -> Result<String> {
    let args = [&["-c", machine.board.address, "-J", "--connect-timeout", "5000"], args].concat();
    let out = machine.client("iperf3", &args)?;
    let report: Value = serde_json::from_slice(&out).context("iperf3's report")?;
    ensure!(report.get("error").is_none(), "iperf3: {}", report["error"]);
    let sum = report.pointer(&format!("/{sum}")).context("iperf3's sums")?;
    let rate = sum["bits_per_second"].as_f64().context("iperf3's rate")?;
    ensure!(rate > 1e6, "{:.2} Mb/s", rate / 1e6);
    Ok(format!("{:.1} Mb/s", rate / 1e6))
}

/// The board calls an iperf3 server, sends, and receives.
fn caller(machine: &mut Machine<'_>) -> Result<String> {
    let mut server = machine.network.command("iperf3");
    server.args(["-s", "-p", "5299"]).stdout(std::process::Stdio::null());
    let mut server = server.spawn().context("cannot start iperf3")?;
    let done = called(machine);
    server.kill()?;
    server.wait()?;
    done
}

fn called(machine: &mut Machine<'_>) -> Result<String> {
    sleep(Duration::from_millis(500));
    let (server, _) = CLIENT.split_once('/').context("the client's address has a prefix")?;
    for options in ["", " -R", " -u -b 5M", " -P 2"] {
        machine.console.ask(&format!("iperf3 {server} -p 5299 -t 1{options}"))?;
        let said = machine.console.wait_for("iperf", Duration::from_secs(20))?;
        let rest = machine.console.wait_for("> ", Duration::from_secs(5))?;
        ensure!(said.contains("receiver") && rest.contains("Done."), "{options}: {said}{rest}");
    }
    let answer = machine.console.ask("iperf3 nonsense")?;
    ensure!(answer.contains("expected an IP address"), "{answer}");
    Ok(String::new())
}

fn killed(machine: &mut Machine<'_>) -> Result<String> {
    let mut client = machine.network.command("iperf3");
    client.args(["-c", machine.board.address, "-t", "20"]).stdout(std::process::Stdio::null());
    let mut client = client.spawn().context("cannot start iperf3")?;
    sleep(Duration::from_millis(1_500));
    client.kill()?;
    client.wait()?;
    sleep(Duration::from_millis(500));
    iperf3(machine, &["-n", "1M"], "end/sum_received").context("the next client")
}

fn pacing(machine: &mut Machine<'_>) -> Result<String> {
    let before = machine.console.ask("pacing")?;
    let set = before.lines().find(|line| line.ends_with(" frames")).context("no pacing")?.replace(',', "");
    let [mode, timer, _, frames, _] = set.split_whitespace().collect::<Vec<_>>()[..] else {
        bail!("pacing was answered by {set:?}")
    };
    // A threshold alone lets less than that wait for ever.
    for wanted in ["none 0 1", "last-interrupt 500 4", "first-new-packet 500 4", "last-new-packet 500 4"] {
        let answer = machine.console.ask(&format!("pacing {wanted}"))?;
        let name = wanted.split(' ').next().unwrap_or_default();
        ensure!(answer.contains(&format!("{name}, ")), "{wanted}: {answer}");
        let page = machine.client("curl", &["-sSf", "-m", "20", &url(machine, "/memory/200000")])?;
        ensure!(page == pattern(200_000), "{wanted}: the page is another");
    }
    machine.console.ask(&format!("pacing {mode} {timer} {frames}"))?;
    let answer = machine.console.ask("pacing sometimes 1 1")?;
    ensure!(answer.contains("no such mode; expected none, last-interrupt"), "pacing sometimes: {answer}");
    for (wanted, expected) in [
        ("last-interrupt 4000000000 1", "4000000000 us given, 0 to 100000 expected"),
        ("first-new-packet 100 0", "0 frames given, 1 to "),
        ("last-interrupt 100 256", "256 frames given, 1 to "),
    ] {
        let answer = machine.console.ask(&format!("pacing {wanted}"))?;
        ensure!(
            answer.contains(expected),
            "pacing {wanted} was answered by {answer:?}, expected {expected:?}"
        );
    }
    let answer = machine.console.ask("pacing")?;
    ensure!(
        answer.replace(',', "").contains(&set),
        "pacing {answer:?} though all was refused, {set:?} before"
    );
    let answer = machine.console.ask("reserve 99")?;
    ensure!(answer.contains("99 given, 0 to 90 expected"), "{answer}");
    Ok(set)
}

/// How late a task above the network comes to run while it sends.
pub fn latency(machine: &mut Machine<'_>) -> Result<String> {
    let answer = machine.console.ask("latency")?;
    ensure!(answer.starts_with("0 runs, nothing measured"), "latency, never on: {answer}");
    machine.console.ask("latency on")?;
    iperf3(machine, &["-t", "1", "-R"], "end/sum_received")?;
    let answer = machine.console.ask("latency")?;
    machine.console.ask("latency off")?;
    let line = answer.lines().find(|line| line.contains("runs")).context("no runs")?;
    let runs = line.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
    ensure!(runs.is_some_and(|runs| runs > 50), "{line}");
    Ok(line.trim().to_owned())
}

fn rounds(machine: &mut Machine<'_>) -> Result<u64> {
    let answer = machine.console.ask("compute")?;
    let digits: String = answer.chars().filter(char::is_ascii_digit).collect();
    digits.parse().with_context(|| format!("compute was answered by {answer:?}"))
}

fn flood(machine: &mut Machine<'_>) -> Result<String> {
    // Rounds of the application in a second, alone and beside a flood of small frames.
    let rate = |machine: &mut Machine<'_>, work: &dyn Fn(&Machine<'_>) -> Result<()>| -> Result<f64> {
        let (before, started) = (rounds(machine)?, Instant::now());
        work(machine)?;
        Ok((rounds(machine)? - before) as f64 / started.elapsed().as_secs_f64())
    };
    machine.console.ask("compute on")?;
    let alone = rate(machine, &|_| {
        sleep(Duration::from_secs(1));
        Ok(())
    })?;
    let flooded = rate(machine, &|machine| {
        let out = machine.client("ping", &["-f", "-c", "5000", "-w", "20", machine.board.address])?;
        let out = String::from_utf8_lossy(&out);
        ensure!(out.contains(" 0% packet loss"), "{out}");
        Ok(())
    })?;
    machine.console.ask("compute off")?;
    ensure!(flooded > 0.0, "the application did nothing during the flood");
    Ok(format!("{:.0} % of its work", flooded / alone * 100.0))
}

/// What the board knows of itself.
pub fn stats(machine: &Machine<'_>) -> Result<Value> {
    let out = machine.client("curl", &["-sSf", "-m", "10", &url(machine, "/stats")])?;
    serde_json::from_slice(&out).context("/stats")
}

/// Frames that it dropped, for whatever reason.
fn drops(machine: &Machine<'_>) -> Result<u64> {
    let stats = stats(machine)?;
    let counters = stats["counters"].as_object().context("counters")?;
    let drops = counters.iter().filter(|(name, _)| name.starts_with("drop_"));
    Ok(drops.filter_map(|(_, count)| count.as_u64()).sum())
}

fn hostile(machine: &mut Machine<'_>) -> Result<String> {
    // So many others are served meanwhile, and so many frames come in; the one may take longer than the other.
    const OTHERS: usize = 15;
    const DROPPED: u64 = 3_000;
    let before = drops(machine)?;
    let flood = Flood::start(machine)?;
    let mut served = 0;
    let mut dropped = 0;
    while served < OTHERS || (dropped < DROPPED && served < 60 * OTHERS) {
        dropped = drops(machine)? - before;
        served += 1;
    }
    flood.end()?;
    machine.client("curl", &["-sSf", "-m", "10", "-o", "/dev/null", &url(machine, "/memory/1M")])?;
    ensure!(dropped >= DROPPED, "{dropped} frames dropped: the flood did not reach the board");
    Ok(format!("{served} others served, {dropped} frames dropped"))
}

fn connections(machine: &mut Machine<'_>) -> Result<String> {
    let urls = vec![url(machine, "/"); 200];
    let mut args =
        vec!["-sSf", "-m", "60", "-H", "Connection: close", "-w", "%{http_code}\n", "-o", "/dev/null"];
    for url in &urls {
        args.extend([url.as_str(), "-o", "/dev/null"]);
    }
    let out = machine.client("curl", &args)?;
    let good = String::from_utf8_lossy(&out).lines().filter(|line| *line == "200").count();
    ensure!(good == urls.len(), "{good} of {} were answered", urls.len());
    Ok(String::new())
}

fn counters(machine: &mut Machine<'_>) -> Result<String> {
    // What was closed last is gone by then, TIME-WAIT apart.
    sleep(Duration::from_millis(500));
    let stats = stats(machine)?;
    for name in machine.board.faults {
        ensure!(stats["interface"][*name] == 0, "{name}: {}", stats["interface"][*name]);
    }
    let receive = &stats["memory"]["receive"];
    let free = receive["free"].as_u64().map(|free| free + machine.board.kept);
    ensure!(free == receive["total"].as_u64(), "receive buffers are missing: {receive}");
    ensure!(stats["memory"]["pages"]["free"] == stats["memory"]["pages"]["total"], "pages are missing");
    let tasks = stats["tasks"].as_array().context("tasks")?;
    for task in tasks {
        let free = task["stack_free"].as_u64().context("stack_free")?;
        ensure!(free > 256, "{} has {free} bytes of stack left", task["name"]);
    }
    let lowest = stats["heap"]["lowest"].as_u64().context("heap")?;
    let network = tasks.iter().find(|task| task["name"] == "network").context("the network task")?;
    Ok(format!("heap {lowest} bytes free at least, network's stack {}", network["stack_free"]))
}
