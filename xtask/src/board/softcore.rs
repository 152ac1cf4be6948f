//! The board `softcore`: no emulator, but its RTL in simulation, clock by clock.

use super::ending::Ending;
use super::names::Names;
use super::network::{Network, TAP};
use super::{OUT, checks, soft_count, soft_order, soft_profile};
use crate::rtl::bitstream;
use crate::{firmware, packages, rtl, shell, suites};
use anyhow::{Context, Result, bail, ensure};
use object::read::elf::{ElfFile32, ProgramHeader as _};
use object::{Endianness, elf};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const NAME: &str = "softcore";
pub const TARGET: &str = "riscv32imac-unknown-none-elf";
/// Tells the image how many nanoseconds a clock has, where it is not 10.
const CLOCK: &str = "LINERATE_BOARD_CLOCK_NS";
/// Its address, as in its `board.toml`.
const ADDRESS: &str = "192.168.1.20";
const GREETING: &str = "help tells the commands";
/// What looks up addresses, and where it comes from.
const ADDRESSES: &str = "riscv64-unknown-elf-addr2line";
const BINUTILS: &str = "binutils-riscv64-unknown-elf";
/// How long the simulation may take to the greeting.
const START: Duration = Duration::from_secs(120);

/// What `cargo xtask board softcore WORDS` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Build,
    Serve,
    Test,
    Bench,
    /// What memory and the interface's engine carry, beside what is predicted.
    Rates,
    Ramp {
        is_quick: bool,
    },
    /// The file that configures an FPGA, and the image for its flash.
    Bitstream(bitstream::Options),
    /// That design as a whole in simulation, with its image; `is_quick`: without the loader's work.
    Whole {
        is_quick: bool,
    },
    /// All that can be counted, or one of it.
    Count(Option<&'static str>),
    /// How often each part of the image is executed, for the compiler of the next one.
    Profile,
    /// Where the functions of the next image lie.
    Order,
}

impl Verb {
    /// Without words it serves.
    pub fn parse(words: &[&str]) -> Result<Verb> {
        Ok(match words {
            [] | ["serve"] => Verb::Serve,
            ["build"] => Verb::Build,
            ["test"] => Verb::Test,
            ["bench"] => Verb::Bench,
            ["rates"] => Verb::Rates,
            ["ramp"] => Verb::Ramp { is_quick: false },
            ["ramp", "quick"] => Verb::Ramp { is_quick: true },
            ["bitstream", words @ ..] => Verb::Bitstream(bitstream::Options::parse(words)?),
            ["whole"] => Verb::Whole { is_quick: false },
            ["whole", "quick"] => Verb::Whole { is_quick: true },
            ["count"] => Verb::Count(None),
            ["profile"] => Verb::Profile,
            ["order"] => Verb::Order,
            ["count", only] => Verb::Count(Some(soft_count::named(only)?)),
            [what, ..] => bail!(
                "board softcore: {what:?} is none of serve, test, count [WHAT], bench, rates, ramp [quick], profile, order, bitstream, whole [quick] and build, or has too much behind it\n{}",
                super::USAGE
            ),
        })
    }
}

/// Carries it out.
pub fn run(verb: Verb) -> Result<()> {
    match verb {
        Verb::Bitstream(options) => {
            flash_image(options)?;
            bitstream::run(options)
        }
        Verb::Whole { is_quick } => {
            bitstream::simulate(&flash_image(bitstream::Options::parse(&[])?)?, is_quick)
        }
        Verb::Build => build().map(drop),
        Verb::Serve => serve(&build()?),
        Verb::Test => test(&build_as_tests()?),
        Verb::Bench => bench(&build()?),
        Verb::Rates => {
            println!("{}", rates(&build()?)?);
            Ok(())
        }
        Verb::Ramp { is_quick } => {
            let (board, quick) = (build()?, is_quick.then_some("quick"));
            shell::run(Command::new(board.hardware).arg(board.image).args(["ramp", OUT]).args(quick))
        }
        Verb::Count(only) => {
            let board = build()?;
            soft_count::run(&board.hardware, &board.image, only)
        }
        Verb::Profile => soft_profile::write(&build()?.hardware),
        Verb::Order => {
            // The same whatever the order was before.
            let before = soft_order::forget()?;
            let found = build().and_then(|board| soft_order::write(&board.hardware, &board.image));
            if found.is_err() {
                soft_order::put(&before)?;
            }
            found
        }
    }
}

/// The image, and the hardware as a program.
struct Built {
    image: PathBuf,
    hardware: PathBuf,
}

fn build() -> Result<Built> {
    hardware("release", &["--release", "--package", "linerate-rtl-sim", "--features", "softcore"])
}

/// The same with the hardware as the tests of the workspace are built: what they left behind serves, and clocks are counted alike.
fn build_as_tests() -> Result<Built> {
    let [flag, profile] = suites::PROFILE;
    let features = format!("{},linerate-rtl-sim/softcore", suites::EVERYTHING[1]);
    hardware(profile, &[flag, profile, suites::EVERYTHING[0], &features])
}

/// Builds the image, and the hardware with these arguments of cargo, which lead to the folder of this name.
fn hardware(folder: &str, args: &[&str]) -> Result<Built> {
    let mut cargo = firmware::compiler(TARGET)?;
    soft_profile::apply(&mut cargo)?;
    let image = build_image(cargo, Path::new(OUT))?;
    rtl::prepare()?;
    let mut cargo = shell::cargo();
    cargo.args(["build", "--locked", "--example", "softcore"]).args(args);
    // The other blocks take minutes to compile, and are not needed.
    shell::run(cargo.env("LINERATE_RTL_ONLY", "softcore"))?;
    Ok(Built { image, hardware: shell::target().join(folder).join("examples/softcore") })
}

/// Builds the image into a folder.
pub fn build_image(mut cargo: Command, out: &Path) -> Result<PathBuf> {
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "boards/softcore/Cargo.toml",
        "--target",
        TARGET,
    ]);
    cargo.arg("--target-dir").arg(out);
    cargo.arg(format!("--config=target.{TARGET}.linker={:?}", firmware::linker()?));
    shell::run(&mut cargo)?;
    let image = out.join(TARGET).join("release").join(NAME);
    let (code, memory) = firmware::size(&image)?;
    println!(
        "{NAME}: {code} bytes of code and constants, {memory} bytes of memory, heap and packets included"
    );
    Ok(image)
}

/// The image for a chip with this clock, as it lies in flash.
fn flash_image(options: bitstream::Options) -> Result<PathBuf> {
    let mut cargo = firmware::compiler(TARGET)?;
    cargo.env(CLOCK, options.clock_ns().to_string());
    soft_profile::apply(&mut cargo)?;
    let image = loaded(&std::fs::read(build_image(cargo, Path::new(OUT))?)?)?;
    let path = bitstream::write_flash_image(&image)?;
    println!("{}: {} bytes, for {:#x} in flash", path.display(), image.len(), bitstream::IMAGE_AT);
    Ok(path)
}

/// What an ELF file for 32 bits has in memory, from address 0 on.
fn loaded(file: &[u8]) -> Result<Vec<u8>> {
    let image = ElfFile32::<Endianness>::parse(file).context("the image")?;
    let endian = image.endian();
    let mut memory = Vec::new();
    for header in image.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD) {
        let bytes = header.data(endian, file).ok().context("an image that ends early")?;
        let address = header.p_paddr(endian) as usize;
        memory.resize(memory.len().max(address + bytes.len()), 0);
        memory[address..][..bytes.len()].copy_from_slice(bytes);
    }
    Ok(memory)
}

impl Built {
    /// The hardware with its cable in a namespace.
    fn serving(&self, network: &Network, straps: &[&str]) -> Result<Command> {
        let program = self.hardware.canonicalize()?;
        let mut command = network.command(program.to_str().context("a path")?);
        command.arg(&self.image).args(["serve", TAP]).args(straps);
        Ok(command)
    }
}

/// Starts the board with its console on this terminal, until its input ends.
fn serve(board: &Built) -> Result<()> {
    let ending = Ending::listen()?;
    let network = Network::unwatched(NAME)?;
    println!("\n{NAME} starts, which takes some seconds; then, in another terminal:\n");
    if let Network::Namespace(name) = &network {
        println!("  sudo ip netns exec {name} curl http://{ADDRESS}/page.html");
        println!("  sudo ip netns exec {name} iperf3 -c {ADDRESS} -n 1M          # and with -R\n");
    }
    println!("The console is here; Ctrl-D ends it.\n");
    packages::require(&[BINUTILS])?;
    let mut hardware = board.serving(&network, &[])?;
    let mut hardware = hardware.stdout(Stdio::piped()).spawn().context("cannot start the simulation")?;
    let console = hardware.stdout.take().context("the console")?;
    let names = Names::by(ADDRESSES, &board.image);
    let (status, copied) = ending.watch(&mut hardware, || names.copy(console, std::io::stdout()))?;
    // After a signal there may be no terminal any more to copy to.
    let Some(status) = status else { return Ok(()) };
    copied?;
    ensure!(status.success(), "the simulation ended with {status}");
    Ok(())
}

/// A board that runs, and what its console has said.
struct Machine<'a> {
    network: &'a Network,
    hardware: Child,
    /// It ends when this is closed.
    keys: ChildStdin,
    said: Arc<Mutex<Vec<u8>>>,
}

impl<'a> Machine<'a> {
    fn start(board: &Built, network: &'a Network, straps: &[&str]) -> Result<Machine<'a>> {
        let mut command = board.serving(network, straps)?;
        let mut hardware = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the simulation")?;
        let keys = hardware.stdin.take().context("the keys")?;
        let mut console = hardware.stdout.take().context("the console")?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = console.read(&mut bytes) {
                if let Ok(mut kept) = kept.lock() {
                    kept.extend_from_slice(&bytes[..count]);
                }
            }
        });
        let mut machine = Machine { network, hardware, keys, said };
        machine.wait_for(GREETING)?;
        Ok(machine)
    }

    /// Waits until the console has said this.
    fn wait_for(&mut self, text: &str) -> Result<()> {
        let started = Instant::now();
        while !self.said().contains(text) {
            if let Some(status) = self.hardware.try_wait()? {
                bail!("the simulation ended with {status}: {}", self.said());
            }
            ensure!(started.elapsed() < START, "no {text:?} within {START:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn said(&self) -> String {
        self.said.lock().map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default()
    }

    /// Runs a client to its end, and returns what it printed.
    fn client(&self, program: &str, args: &[&str]) -> Result<Vec<u8>> {
        let output = self.network.command(program).args(args).output()?;
        ensure!(
            output.status.success(),
            "{program} ended with {}: {}{}; the console said: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            self.said()
        );
        Ok(output.stdout)
    }

    fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.client("curl", &["-sS", "-f", "--max-time", "60", &format!("http://{ADDRESS}{path}")])
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // `ip netns exec` becomes the simulation: this is its own process.
        if let Err(error) = self.hardware.kill().and_then(|()| self.hardware.wait()) {
            eprintln!("the simulation did not end: {error}");
        }
    }
}

/// A check of a board that runs.
type Check = fn(&mut Machine<'_>) -> Result<()>;

/// Starts the board, and lets clients of the kernel try it.
fn test(board: &Built) -> Result<()> {
    packages::require(&["curl", "iperf3", "lftp", "iproute2", BINUTILS])?;
    let network = Network::in_namespace(NAME)?;
    let started = Instant::now();
    let mut machine = Machine::start(board, &network, &[])?;
    println!("ok      the image starts ({:.1} s)", started.elapsed().as_secs_f32());
    let checks: [(&str, Check); 5] = [
        ("the caches do not see what is behind them, until emptied", caches),
        ("copies of all lengths and places", copies),
        ("HTTP", http),
        ("FTP", ftp),
        ("iperf3 both ways", iperf3),
    ];
    for (name, check) in checks {
        let started = Instant::now();
        check(&mut machine).context(name)?;
        println!("ok      {name} ({:.1} s)", started.elapsed().as_secs_f32());
    }
    ensure!(!machine.said().contains("***"), "the image ended: {}", machine.said());
    let started = Instant::now();
    hang(&mut machine, &Names::by(ADDRESSES, &board.image)).context("the watchdog")?;
    println!(
        "ok      the watchdog reports a loop that hangs and starts the board anew ({:.1} s)",
        started.elapsed().as_secs_f32()
    );
    let started = Instant::now();
    let said = shell::output(Command::new(&board.hardware).arg(&board.image).args(["measure", "caches"]))?;
    println!(
        "ok      each cache operation of the driver is needed ({:.1} s)",
        started.elapsed().as_secs_f32()
    );
    said.lines().for_each(|line| println!("        {line}"));
    let (started, said) = (Instant::now(), rates(board)?);
    let said = said.lines().last().unwrap_or_default();
    println!(
        "ok      memory and DMA as the chip file says: {said} ({:.1} s)",
        started.elapsed().as_secs_f32()
    );
    let (started, said) = (Instant::now(), soft_count::check(&board.hardware, &board.image)?);
    println!("ok      a count by function: {said} ({:.1} s)", started.elapsed().as_secs_f32());
    let started = Instant::now();
    let said = shell::output(Command::new(&board.hardware).arg(&board.image).args(["ramp", "check"]))?;
    println!("ok      a level of the ramp: {} ({:.1} s)", said.trim(), started.elapsed().as_secs_f32());
    Ok(())
}

/// A table of rates, measured and predicted from `boards/socs/softcore.toml`; an error where they are not close.
fn rates(board: &Built) -> Result<String> {
    let mut command = Command::new(&board.hardware);
    let table = shell::output(command.arg(&board.image).args(["measure", "rates"]))?;
    Ok(table.trim_end().to_owned())
}

fn caches(machine: &mut Machine<'_>) -> Result<()> {
    machine.keys.write_all(b"caches\r")?;
    machine.wait_for("a 1 became 2: read 1, and 2 once the cache was emptied")
}

/// The loop hangs; the report names who, and the board serves again. What was stored is gone with the RAM disk.
fn hang(machine: &mut Machine<'_>, names: &Names) -> Result<()> {
    machine.keys.write_all(b"hang\r")?;
    let started = Instant::now();
    while machine.said().matches(GREETING).count() < 2 {
        ensure!(started.elapsed() < START, "no second start within {START:?}: {}", machine.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = names.explain(&machine.said());
    for part in [
        "*** watchdog: task network has made no progress for 8 s",
        "hang_on_purpose",
        "boards/softcore/src/main.rs",
    ] {
        ensure!(report.contains(part), "no {part:?} in {report}");
    }
    let stats: serde_json::Value = serde_json::from_slice(&machine.get("/stats")?)?;
    ensure!(stats["last_start"] == "watchdog" && stats["starts_by_watchdog"] == 1, "/stats: {stats}");
    let page = std::fs::read("boards/softcore/files/page.html")?;
    ensure!(machine.get("/page.html")? == page, "the page is another one");
    ensure!(machine.get("/ram/file").is_err(), "the RAM disk has a file of before");
    Ok(())
}

fn copies(machine: &mut Machine<'_>) -> Result<()> {
    machine.keys.write_all(b"copies\r")?;
    machine.wait_for("2525 copies, 0 wrong; 42025 comparisons, 0 wrong")
}

fn http(machine: &mut Machine<'_>) -> Result<()> {
    let page = std::fs::read("boards/softcore/files/page.html")?;
    ensure!(machine.get("/page.html")? == page, "the page is another one");
    ensure!(machine.get("/memory/100K")? == checks::pattern(100 << 10), "the pattern is another one");
    let stats: serde_json::Value = serde_json::from_slice(&machine.get("/stats")?)?;
    ensure!(stats["name"] == NAME, "/stats: {stats}");
    Ok(())
}

/// A file there and back, by content.
fn ftp(machine: &mut Machine<'_>) -> Result<()> {
    let bytes: Vec<u8> = (0..60_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let file = checks::Scratch::new("upload", &bytes)?;
    let url = format!("ftp://user:password@{ADDRESS}/ram/file");
    machine.client("curl", &["-sS", "--max-time", "60", "-T", file.path(), &url])?;
    ensure!(machine.client("curl", &["-sS", "--max-time", "60", &url])? == bytes, "another file came back");
    Ok(())
}

fn iperf3(machine: &mut Machine<'_>) -> Result<()> {
    machine.client("iperf3", &["-c", ADDRESS, "-n", "300K"])?;
    machine.client("iperf3", &["-c", ADDRESS, "-n", "300K", "-R"]).map(drop)
}

/// What is measured in virtual time, with the goal, and what the seed's server and lwIP on a MicroBlaze of the same clock reach.
const FIGURES: [(&str, &[&str], &str); 6] = [
    ("TCP in, with offloads", &["receive"], "goal 400 Mb/s; lwIP 182"),
    ("TCP out, with offloads", &["send"], "goal 400 Mb/s; lwIP 100, seed 003 61"),
    ("TCP in, without", &["receive", "without-offloads"], "goal 150 Mb/s"),
    ("TCP out, without", &["send", "without-offloads"], "goal 150 Mb/s"),
    ("354 bytes by HTTP, keep-alive", &["requests"], "goal 3,000/s"),
    ("354 bytes by HTTP, closing", &["closing"], "goal 1,000/s; seed 003 300, three a connection"),
];

/// Measures beside a host in the board's time, and prints a table.
fn bench(board: &Built) -> Result<()> {
    for (name, arguments, beside) in FIGURES {
        let mut command = Command::new(&board.hardware);
        command.arg(&board.image).arg("measure").args(arguments).stderr(Stdio::null());
        let figure = shell::output(&mut command).with_context(|| name.to_owned())?;
        println!("{name}: {}\n    ({beside})", figure.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_lies_in_memory_where_its_parts_are_loaded() {
        let mut file = b"\x7fELF\x01\x01\x01".to_vec();
        file.resize(16, 0);
        // A program for RISC-V, with a table of two parts right behind this header.
        for half in [2_u16, 243] {
            file.extend(half.to_le_bytes());
        }
        for word in [1_u32, 0, 52, 0, 0] {
            file.extend(word.to_le_bytes());
        }
        for half in [52_u16, 32, 2, 40, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        // Loaded elsewhere than where it is used; and one that is not loaded.
        for word in [1_u32, 116, 0x100, 6, 3, 9, 7, 4, 4, 116, 0, 0, 3, 3, 4, 4] {
            file.extend(word.to_le_bytes());
        }
        file.extend(b"abc");
        assert_eq!(loaded(&file).unwrap(), b"\0\0\0\0\0\0abc");
        assert!(loaded(&file[..118]).is_err() && loaded(b"nothing").is_err());
    }

    #[test]
    fn words_are_known_before_anything_is_built() {
        assert_eq!(Verb::parse(&[]).unwrap(), Verb::Serve);
        assert_eq!(Verb::parse(&["ramp", "quick"]).unwrap(), Verb::Ramp { is_quick: true });
        assert_eq!(
            Verb::parse(&["bitstream", "--div", "8"]).unwrap(),
            Verb::Bitstream(bitstream::Options { divider: 8, seed: 1, again: false })
        );
        assert_eq!(Verb::parse(&["whole", "quick"]).unwrap(), Verb::Whole { is_quick: true });
        assert_eq!(Verb::parse(&["count"]).unwrap(), Verb::Count(None));
        assert_eq!(Verb::parse(&["count", "closing"]).unwrap(), Verb::Count(Some("closing")));
        for wrong in [
            &["dance"][..],
            &["count", "sheep"],
            &["test", "twice"],
            &["count", "send", "receive"],
            &["bitstream", "now"],
        ] {
            assert!(Verb::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
