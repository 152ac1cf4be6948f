//! Firmware for the boards: built, started in an emulator with a network, and tested by real clients.

mod bench;
mod checks;
mod console;
mod cores;
mod count;
mod ending;
mod flood;
mod instruments;
mod livelock;
mod machine;
mod names;
mod network;
mod offloads;
mod placement;
mod soft_count;
mod soft_order;
mod soft_profile;
mod soft_work;
mod softcore;
mod watchdog;

pub use soft_profile::compile;

use crate::{firmware, lab, packages, shell};
use anyhow::{Context, Result, bail};
use ending::Ending;
use machine::Machine;
use names::Names;
use network::Network;
use std::path::{Path, PathBuf};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask board NAME [serve|test|count|bench|offloads|livelock|build|setup]

  serve    build the image, start it in the emulator with its console here; as root in a network namespace with a TAP,
           else with ports of this machine forwarded (the default)
  test     build the image, start it, and try it with curl, lftp, iperf3 and ping in a namespace (as root)
  count    count the instructions of a TCP segment each way, by function (as root); `count wire=100mbit`: what comes to the board comes
           at that rate, frame by frame; `count pacing=last-interrupt,400,4`: with these interrupts, as on the console
  bench    count, sizes and rates as a table, and as JSON in target/boards/bench.json (as root)
  offloads xlnx-zcu102 and virt-a15: rates and instructions for a byte without the interface's offloads, with them and on all
           cores, into the same file (as root)
  livelock mps2-an500 and virt-a15: what clients and other tasks get while small frames come ever faster, with nothing left to
           others and with what the image leaves, into the same file (as root)
  ramp     softcore alone: requests at rising rates in virtual time, as in seed 003; tables, and
           target/boards/softcore-ramp.{csv,json,svg,html}; `ramp quick`: every other level of half the length
  rates    softcore alone: what memory and the interface's DMA carry, beside what `linerate fabric predict softcore` says
  bitstream softcore alone: the image and the file that configures an ECP5 (LFE5U-85F), with what they take and the clocks that are
           reached, into target/rtl/bitstream; half an hour; `--div N`: a clock of 500 MHz by N (14), `--seed N` of the placer,
           `again` for the last netlist
  profile  softcore alone: how often each part of its image is executed, for the compiler, into boards/softcore/profile.profdata
  order    softcore alone: at which places of its cache functions lie, by how they are executed, into boards/softcore/order.x
  whole    softcore alone: that design with its image, SDRAM, flash and PHY in simulation, from power-up to a page by HTTP;
           16 minutes of a processor; `whole quick` without what the loader does
  build    build the image and print its size
  setup    install what the others need, as root

boards: mps2-an500 (Cortex-M7), virt-a15 (Cortex-A15), virt-a15-embassy (the same under Embassy; a short test), xlnx-zcu102 (Cortex-A53), all; softcore (RISC-V, its RTL in
simulation: serve and test as root, bench and ramp in virtual time, and count there with all clocks: `count requests`,
closing, receive or send for one of them); nucleo-h743zi (Cortex-M7: build alone)";

/// The interface as the emulator knows it, by its model.
#[derive(Clone, Copy, Debug)]
enum Interface {
    /// Part of the board.
    Soldered(&'static str),
    /// A device that is added to the board.
    Plugged(&'static str),
}

/// What there is to know of a board.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// The name of its image.
    pub name: &'static str,
    /// Its folder under `boards`.
    pub folder: &'static str,
    /// Features of its crate, instead of those that it has by itself.
    features: Option<&'static str>,
    target: &'static str,
    /// What the compiler is told beyond the target.
    rustflags: &'static [&'static str],
    /// The emulator and its options; none for a board that is there in hardware alone.
    emulator: &'static [&'static str],
    interface: Interface,
    /// What to install: the emulator, and a C compiler where there is C.
    packages: &'static [&'static str],
    /// Its address, as in its `board.toml`.
    pub address: &'static str,
    /// Name and password of who may write by FTP, as there.
    pub user: (&'static str, &'static str),
    /// Bytes of its RAM disk, as there.
    pub ram_disk: usize,
    /// Receive buffers that its interface keeps.
    pub kept: u64,
    /// Counters of its interface that stay zero.
    pub faults: &'static [&'static str],
    /// What is checked of what every board does,
    common: &'static [(&'static str, checks::Check)],
    /// and beside that.
    pub checks: &'static [(&'static str, checks::Check)],
    /// How it is ended at last.
    ends: &'static [watchdog::End],
}

/// What boards under FreeRTOS have.
const LATENCY: (&str, checks::Check) = ("a task that runs each millisecond", checks::latency);

/// How they are ended.
const TASKS: &[watchdog::End] = &[watchdog::NETWORK, watchdog::CONTROL, watchdog::PANIC];

/// A cable that ends in the emulator.
const UNPLUGGED: &str = "user,restrict=on,model=cadence_gem";

/// The board `virt`, under FreeRTOS.
const VIRT_A15: Board = Board {
    name: "virt-a15",
    folder: "virt-a15",
    features: None,
    target: "armv7a-none-eabi",
    // That of hard floats has no library for rustup to install.
    rustflags: &["-Ctarget-cpu=cortex-a15"],
    emulator: &[
        "qemu-system-arm",
        "-M",
        "virt",
        "-cpu",
        "cortex-a15",
        "-m",
        "128M",
        "-global",
        "virtio-mmio.force-legacy=false",
    ],
    interface: Interface::Plugged("virtio-net-device"),
    packages: &["qemu-system-arm", "gcc-arm-none-eabi", "libnewlib-arm-none-eabi"],
    address: "192.168.1.4",
    user: ("user", "password"),
    ram_disk: 16 << 20,
    kept: 512,
    faults: &["drop_rx_errors", "drop_rx_no_buffer", "drop_tx_errors", "resets"],
    common: checks::ALL,
    checks: &[LATENCY, ("FTP as in seed 000", checks::seed_000)],
    ends: TASKS,
};

const BOARDS: [Board; 5] = [
    Board {
        name: "mps2-an500",
        folder: "mps2-an500",
        features: None,
        target: "thumbv7em-none-eabihf",
        rustflags: &[],
        emulator: &["qemu-system-arm", "-M", "mps2-an500"],
        interface: Interface::Soldered("lan9118"),
        packages: &["qemu-system-arm", "gcc-arm-none-eabi", "libnewlib-arm-none-eabi"],
        address: "192.168.1.50",
        user: ("user", "user"),
        ram_disk: 256 << 10,
        kept: 0,
        faults: &["drop_rx_errors", "drop_tx_errors", "rx_starved", "rx_resets", "tx_resets"],
        common: checks::ALL,
        checks: &[LATENCY],
        ends: TASKS,
    },
    VIRT_A15,
    Board {
        name: "virt-a15-embassy",
        features: Some("embassy"),
        packages: &["qemu-system-arm", "gcc-arm-none-eabi"],
        common: checks::SHORT,
        checks: &[],
        ends: &[watchdog::NETWORK],
        ..VIRT_A15
    },
    Board {
        name: "xlnx-zcu102",
        folder: "xlnx-zcu102",
        features: None,
        target: "aarch64-unknown-none",
        rustflags: &["-Ctarget-cpu=cortex-a53"],
        // The board's plug is that of the fourth controller; the emulator hands cables out from the first on.
        emulator: &[
            "qemu-system-aarch64",
            "-M",
            "xlnx-zcu102",
            "-m",
            "512M",
            "-smp",
            "4",
            "-audiodev",
            "none,id=quiet",
            "-nic",
            UNPLUGGED,
            "-nic",
            UNPLUGGED,
            "-nic",
            UNPLUGGED,
        ],
        interface: Interface::Soldered("cadence_gem"),
        packages: &["qemu-system-arm", "binutils-aarch64-linux-gnu"],
        address: "192.168.1.10",
        user: ("user", "password"),
        ram_disk: 16 << 20,
        kept: 1_022,
        faults: &["drop_rx_errors", "drop_rx_no_buffer", "drop_tx_errors"],
        common: checks::ALL,
        checks: &[
            ("four streams, a core each", cores::streams),
            ("connections on every core", cores::spread),
            ("every core serves during a SYN flood", cores::flooded),
            ("the second queue, steered by hardware", cores::second_queue),
        ],
        ends: &[watchdog::FIRST_CORE, watchdog::SECOND_CORE, watchdog::PANIC],
    },
    Board {
        name: "nucleo-h743zi",
        folder: "nucleo-h743zi",
        features: None,
        target: "thumbv7em-none-eabihf",
        rustflags: &["-Ctarget-cpu=cortex-m7"],
        emulator: &[],
        interface: Interface::Soldered("the chip's own"),
        packages: &[],
        address: "by DHCP",
        user: ("user", "user"),
        ram_disk: 64 << 10,
        kept: 0,
        faults: &[],
        common: &[],
        checks: &[],
        ends: &[],
    },
];

const OUT: &str = "target/boards";
/// What is set in the environment of an image's build instead of `offloads` of its `board.toml`.
const OFFLOADS: &str = "LINERATE_BOARD_OFFLOADS";

/// What boards in an emulator can be asked for.
const VERBS: [&str; 8] = ["serve", "test", "count", "bench", "offloads", "livelock", "build", "setup"];

/// Runs the command for one board or for all. Nothing is built before the arguments are known to be good.
pub fn run(args: &[&str]) -> Result<()> {
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h" | "help")) {
        println!("{USAGE}");
        return Ok(());
    }
    let (name, what) = match args {
        [softcore::NAME, words @ ..] => return softcore::run(softcore::Verb::parse(words)?),
        [name] => (*name, "serve"),
        [name, what] => (*name, *what),
        [name, "count", ..] => (*name, "count"),
        _ => bail!("{USAGE}"),
    };
    let is_chosen = |board: &&Board| match name {
        "all" => matches!(what, "build" | "setup") || !board.emulator.is_empty(),
        _ => board.name == name,
    };
    let boards: Vec<_> = BOARDS.iter().filter(is_chosen).collect();
    if boards.is_empty() {
        bail!("no board {name:?}\n{USAGE}");
    }
    if !VERBS.contains(&what) {
        bail!("board {name}: {what:?} is none of {}\n{USAGE}", VERBS.join(", "));
    }
    if what == "setup" {
        return boards.iter().try_for_each(|board| packages::require(board.packages));
    }
    if what != "build" && boards.iter().any(|board| board.emulator.is_empty()) {
        bail!("{name} has no emulator: `cargo xtask board {name} build`, and flash it (docs/boards.md)");
    }
    let conditions = count::Conditions::parse(args.get(2..).unwrap_or_default())?;
    if what == "offloads" {
        return boards.into_iter().try_for_each(offloads::run);
    }
    let mut measured = Vec::new();
    for board in boards {
        let image = build(board)?;
        match what {
            "build" => {}
            "serve" => serve(board, &image)?,
            "test" => test(board, &image)?,
            "count" => count::run(board, &image, &conditions)?,
            "livelock" => livelock::run(board, &image)?,
            // The last that is left of VERBS.
            _ => measured.push((board, image)),
        }
    }
    if measured.is_empty() { Ok(()) } else { bench::run(&measured) }
}

/// Builds a board's image and prints what it takes.
fn build(board: &Board) -> Result<PathBuf> {
    build_with(board, None)
}

/// The same with or without the interface's offloads, where that is not as `board.toml` says.
fn build_with(board: &Board, offloads: Option<bool>) -> Result<PathBuf> {
    packages::require(board.packages)?;
    let mut cargo = firmware::compiler(board.target)?;
    match offloads {
        Some(offloads) => cargo.env(OFFLOADS, offloads.to_string()),
        None => cargo.env_remove(OFFLOADS),
    };
    let manifest = format!("boards/{}/Cargo.toml", board.folder);
    cargo.args(["build", "--release", "--locked", "--manifest-path", &manifest, "--target", board.target]);
    cargo.args(["--target-dir", OUT]);
    if let Some(features) = board.features {
        cargo.args(["--no-default-features", "--features", features]);
    }
    cargo.arg(format!("--config=target.{}.linker={:?}", board.target, firmware::linker()?));
    cargo.arg(format!("--config=target.{}.rustflags={:?}", board.target, board.rustflags));
    shell::run(&mut cargo)?;
    let images = Path::new(OUT).join(board.target).join("release");
    let image = images.join(board.name);
    if board.name != board.folder {
        // Each crate has one name for its image, whatever its features.
        let built = images.join(board.folder);
        std::fs::copy(&built, &image).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    let (code, memory) = firmware::size(&image)?;
    println!("{}: {code} bytes of flash, {memory} bytes of memory, heap and packets included", board.name);
    Ok(image)
}

/// Starts a board with its console on this terminal, until that or a signal ends it.
fn serve(board: &Board, image: &Path) -> Result<()> {
    let ending = Ending::listen()?;
    let root = shell::output(std::process::Command::new("id").arg("-u"))?.trim() == "0";
    let network = if root { Network::unwatched(board.name)? } else { Network::forwarded(board) };
    println!("\n{} serves. In another terminal:\n\n{}", board.name, network.examples(board));
    println!("The console is here; help tells its commands, Ctrl-A X ends it.\n");
    let mut command = machine::command(board, image, &network);
    command.args(["-nographic", "-serial", "mon:stdio"]);
    command.stdout(std::process::Stdio::piped());
    let mut emulator = command.spawn().context("cannot start the emulator")?;
    let console = emulator.stdout.take().context("the emulator's console")?;
    let names = Names::new(board, image);
    let (status, copied) = ending.watch(&mut emulator, || names.copy(console, std::io::stdout()))?;
    // After a signal there may be no terminal any more to copy to.
    let Some(status) = status else { return Ok(()) };
    copied?;
    if !status.success() {
        bail!("the emulator ended with {status}");
    }
    Ok(())
}

/// Starts a board and tries everything that it does.
fn test(board: &Board, image: &Path) -> Result<()> {
    packages::require(&["curl", "iperf3", "lftp", "iputils-ping", "iproute2", "tcpdump"])?;
    // Their traces are shown to Perfetto's trace processor.
    lab::prepare()?;
    let names = Names::new(board, image);
    let network = Network::in_namespace(board.name)?;
    let mut machine = Machine::start(board, image, &network, &[])?;
    let mut failed = Vec::new();
    // The counters come last: they tell of all that was before.
    let all = board.common.iter().chain(board.checks).chain([&checks::LAST]);
    let count = board.common.len() + board.checks.len() + 1 + board.ends.len();
    for (name, check) in all {
        let started = Instant::now();
        let result = check(&mut machine);
        let took = started.elapsed().as_secs_f32();
        match result {
            Ok(said) => {
                println!("ok      {name} ({took:.1} s){}{said}", if said.is_empty() { "" } else { ": " })
            }
            Err(error) => {
                println!("FAILED  {name} ({took:.1} s): {error:#}");
                failed.push(format!("{name}: {error:#}"));
                // What it knew of itself the first time is in what the console has said.
                if failed.len() == 1 {
                    let asked = ["tasks", "mem", "conns", "stats"].map(|word| machine.console.ask(word));
                    println!("{} of {} questions answered", asked.iter().flatten().count(), asked.len());
                }
            }
        }
        if machine.console.has_ended() {
            let said = names.explain(machine.console.transcript());
            println!("the console of {} said:\n{said}", board.name);
            bail!("{}: the image ended during or after {name:?}", board.name);
        }
    }
    // The very last: the board ends with each, and starts anew.
    for (count, end) in (1..).zip(board.ends) {
        let name = format!("{:?} is reported, and the watchdog starts the board anew", end.command);
        match watchdog::check(&mut machine, &names, end, count) {
            Ok(said) => println!("ok      {name}: {said}"),
            Err(error) => {
                println!("FAILED  {name}: {error:#}");
                failed.push(format!("{name}: {error:#}"));
            }
        }
    }
    println!("{} passed, {} failed", count - failed.len(), failed.len());
    if !failed.is_empty() {
        // What failed comes last, where whoever reads the end of a log finds it.
        println!("the console of {} said:\n{}", board.name, machine.console.transcript());
        bail!("{}: {}", board.name, failed.join("; "));
    }
    Ok(())
}
