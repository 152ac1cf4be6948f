//! Everything in C: the header, the example, packetdrill's interface and its scripts.

use crate::{packages, shell};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The version that made the committed header; another one may write it otherwise.
const CBINDGEN: &str = "0.29.4";
/// The header that C programs include.
const HEADER: &str = "include/linerate.h";
/// Where everything is built.
const OUT: &str = "target/capi";
/// What a static library of Rust needs of the system.
const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];
/// Warnings are errors in all C of ours.
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];
const SANITIZE: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Builds and runs everything; with `update`, writes the header instead of comparing it.
pub fn run(update: bool) -> Result<()> {
    packages::require(&["gcc", "g++", "python3", "iproute2"])?;
    std::fs::create_dir_all(OUT)?;
    header(update)?;
    shell::run(shell::cargo().args(["build", "--release", "--package=linerate-capi", "--locked"]))?;
    let library = shell::target().join("release");
    example(&library)?;
    packetdrill(&library)?;
    if shell::output(Command::new("id").arg("-u"))?.trim() == "0" {
        tap()
    } else {
        println!("capi: echo on a TAP device is skipped: that needs root");
        Ok(())
    }
}

/// The header is what the sources give, and both languages take it.
fn header(update: bool) -> Result<()> {
    let cbindgen = Path::new("target/tools/bin/cbindgen");
    let version = format!("cbindgen {CBINDGEN}");
    if !shell::output(Command::new(cbindgen).arg("--version")).is_ok_and(|found| found.trim() == version) {
        let mut install = shell::cargo();
        // It runs for a second; to optimize it takes a minute.
        install.args(["install", "cbindgen", "--locked", "--quiet", "--debug", "--root=target/tools"]);
        shell::run(install.args(["--version", CBINDGEN]))?;
    }
    let made = format!("{OUT}/linerate.h");
    let config = "--config=crates/capi/cbindgen.toml";
    shell::run(Command::new(cbindgen).args(["--quiet", config, "--output", &made, "crates/capi"]))?;
    let text = std::fs::read_to_string(&made)?;
    if update {
        std::fs::write(HEADER, &text)?;
    }
    ensure!(
        std::fs::read_to_string(HEADER)? == text,
        "{HEADER} is not what crates/capi gives; run `cargo xtask capi update`"
    );
    shell::run(Command::new("cc").args(WARNINGS).args([
        "-std=c99",
        "-pedantic",
        "-fsyntax-only",
        "-xc",
        HEADER,
    ]))?;
    shell::run(Command::new("c++").args(WARNINGS).args(["-pedantic", "-fsyntax-only", "-xc++", HEADER]))
}

/// The C compiler with our warnings, for a program called `output`.
fn cc(output: &str, standard: &str) -> Command {
    let mut cc = Command::new("cc");
    cc.args(WARNINGS).args([standard, "-O1", "-g", "-Iinclude", "-o"]).arg(Path::new(OUT).join(output));
    cc
}

/// The example, linked in each way, and under the sanitizers of the compiler.
fn example(library: &Path) -> Result<()> {
    let source = "examples/c/echo.c";
    let archive = library.join("liblinerate.a");
    let search = library.canonicalize().with_context(|| format!("cannot find {}", library.display()))?;
    shell::run(cc("echo", "-std=c99").arg(source).arg(&archive).args(SYSTEM))?;
    shell::run(cc("echo-sanitized", "-std=c99").args(SANITIZE).arg(source).arg(&archive).args(SYSTEM))?;
    let mut shared = cc("echo-shared", "-std=c99");
    shared.arg(source).arg("-L").arg(&search).arg("-llinerate");
    shell::run(shared.arg(format!("-Wl,-rpath,{}", search.display())))?;
    for program in ["echo", "echo-sanitized", "echo-shared"] {
        shell::run(Command::new(Path::new(OUT).join(program)).arg("--self-test"))?;
    }
    Ok(())
}

/// The scripts, by our own player and, where it is there, by packetdrill.
fn packetdrill(library: &Path) -> Result<()> {
    let object = format!("{OUT}/liblinerate_packetdrill.so");
    let sanitized = format!("{OUT}/liblinerate_packetdrill_sanitized.so");
    let sources = "crates/capi/packetdrill";
    // Only `packetdrill_interface_init` is to be seen from outside.
    let link = ["-shared", "-fPIC", "-Wl,--exclude-libs,ALL"];
    for (name, extra) in
        [("liblinerate_packetdrill.so", &[][..]), ("liblinerate_packetdrill_sanitized.so", &SANITIZE)]
    {
        let mut plugin = cc(name, "-std=gnu99");
        plugin.args(extra).args(link).arg(format!("{sources}/plugin.c")).arg(library.join("liblinerate.a"));
        shell::run(plugin.args(SYSTEM))?;
    }
    let mut player = cc("player", "-std=gnu99");
    shell::run(player.args(SANITIZE).arg(format!("{sources}/player.c")).arg("-ldl"))?;
    let mut scripts: Vec<PathBuf> = std::fs::read_dir("tests/packetdrill")?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    scripts.sort();
    ensure!(!scripts.is_empty(), "tests/packetdrill has no scripts");
    shell::run(Command::new(format!("{OUT}/player")).arg(&sanitized).args(&scripts))?;
    // A player that finds nothing wrong would be worth nothing.
    let wrong = format!("{OUT}/wrong.pkt");
    let right = std::fs::read_to_string("tests/packetdrill/handshake.pkt")?;
    std::fs::write(&wrong, right.replacen("> S. 0:0(0) ack 1 ", "> S. 0:0(0) ack 2 ", 1))?;
    let passes = shell::succeeds(Command::new(format!("{OUT}/player")).arg(&sanitized).arg(&wrong));
    ensure!(!passes, "the player does not see a wrong acknowledgement");
    let program = std::env::var_os("PACKETDRILL").unwrap_or_else(|| "packetdrill".into());
    // Without arguments it prints how to use it, and fails; what matters is whether it is there.
    if Command::new(&program).output().is_err() {
        println!("capi: packetdrill is not here (PATH, PACKETDRILL); the scripts ran in our own player only");
        return Ok(());
    }
    for script in scripts {
        shell::run(Command::new(&program).arg(format!("--so_filename={object}")).arg(script))?;
    }
    Ok(())
}

/// A namespace and what runs in it; both end with the value.
struct Lab {
    name: String,
    server: Option<Child>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        shell::succeeds(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}

/// What the kernel's side does: sends a megabyte, closes its half, and compares what comes back.
const CLIENT: &str = "
import os, socket, threading
data = os.urandom(1 << 20)
peer = socket.create_connection(('192.168.70.4', 7), 10)
def send():
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send)
sender.start()
back = b''
while piece := peer.recv(1 << 16):
    back += piece
sender.join()
assert back == data, (len(back), len(data))
print('capi: 1 MiB came back over TAP')
";

/// The echo server on a TAP device in a namespace of its own, with a client of the kernel.
fn tap() -> Result<()> {
    let name = format!("linerate-capi-{}", std::process::id());
    shell::run(Command::new("ip").args(["netns", "add", &name]))?;
    let mut lab = Lab { name: name.clone(), server: None };
    let inside = |program: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name, program]);
        command
    };
    let mut echo = inside(&format!("{OUT}/echo-sanitized"));
    // Ended by a signal: what it still holds then is no leak.
    echo.env("ASAN_OPTIONS", "detect_leaks=0").args(["echo0", "192.168.70.4/24"]).stdout(Stdio::piped());
    let mut server = echo.spawn()?;
    let ready = server.stdout.take().context("no output of echo")?;
    lab.server = Some(server);
    // It says where it listens once the device is there.
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(ready), &mut line)?;
    if !line.starts_with("echo: TCP port 7") {
        bail!("echo did not start on a TAP device (is there /dev/net/tun?)");
    }
    shell::run(inside("ip").args(["address", "add", "192.168.70.1/24", "dev", "echo0"]))?;
    shell::run(inside("ip").args(["link", "set", "echo0", "up"]))?;
    shell::run(inside("python3").args(["-c", CLIENT]))
}
