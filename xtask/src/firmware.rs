//! Proof that the portable crates need no operating system: images for bare processors, linked to machine code, and how
//! much of it each part is.

use crate::{packages, shell, targets};
use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The processor whose images are measured.
const MEASURED: &str = "thumbv7em-none-eabihf";
/// Further processors that the image with everything in it links for: two that have no compare-and-swap, and one by Debian's
/// compiler. The boards' images link for others.
const LINKED: [(&str, &str); 3] = [
    ("thumbv6m-none-eabi", "Cortex-M0+"),
    ("riscv32imc-unknown-none-elf", "RISC-V without the A extension"),
    ("armv7a-none-eabihf", "Cortex-A15"),
];
/// The images, each with what is in it, and the most bytes of code that it may have: what was measured on 2026-11-30, 255,320, 263,740, 352,004
/// and 572,796, and a hundredth, as rustup's and Debian's compilers differ. What was mended that day took 6,800 of the stack's (2026-11-28: 246,540,
/// 255,024 and 341,856 of the first three).
const IMAGES: [(&str, &str, u64); 4] = [
    ("stack", "the stack alone", 258_000),
    ("tasks", "stack + sockets for tasks", 266_500),
    ("http", "stack + HTTP", 355_500),
    ("servers", "stack + HTTP, FTP, iperf3", 578_500),
];
const OUT: &str = "target/firmware";
/// What comes with the compiler.
const CORE: &str = "core, alloc, compiler_builtins";

/// Links the images of `boards/footprint`: measured for one processor, and for the others to see that they do.
pub fn run() -> Result<()> {
    measure()?;
    println!("\nthe last image, and the iperf3 client, unoptimised, for other processors:\n");
    for (target, processor) in LINKED {
        let started = Instant::now();
        let mut cargo = build(target)?;
        cargo.args(["--quiet", "--bin=servers", "--bin=client"]);
        shell::run(&mut cargo)?;
        println!("{target:<32}{processor:<32} links ({} s)", started.elapsed().as_secs());
    }
    Ok(())
}

/// Links the images for one processor, prints their sizes and holds them against their bounds.
fn measure() -> Result<()> {
    shell::run(build(MEASURED)?.arg("--release"))?;
    println!(
        "\ncode and data of images for {MEASURED}, in bytes (opt-level s, LTO; without heap and stack):\n"
    );
    println!("{:<28}{:>9}{:>9}{:>9}{:>12}", "", "code", "constant", "variable", "code, most");
    let mut last = None;
    let mut grown = Vec::new();
    for (name, title, most) in IMAGES {
        let path = Path::new(OUT).join(MEASURED).join("release").join(name);
        let image = Image::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        println!("{title:<28}{:>9}{:>9}{:>9}{most:>12}", image.code, image.constant, image.variable);
        if image.code > most {
            grown.push(title);
        }
        last = Some(image);
    }
    let Some(image) = last else { return Ok(()) };
    println!("\ncode of the last by crate; what was inlined counts where it ended up:\n");
    let mut parts: Vec<_> = image.parts.into_iter().collect();
    parts.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    for (name, size) in parts {
        println!("{name:<28}{size:>9}");
    }
    ensure!(grown.is_empty(), "more code than its bound in xtask/src/firmware.rs: {}", grown.join(", "));
    Ok(())
}

/// Cargo, about to build the images for `target`.
fn build(target: &str) -> Result<Command> {
    let mut cargo = compiler(target)?;
    cargo.args(["build", "--locked", "--manifest-path=boards/footprint/Cargo.toml", "--features=servers"]);
    cargo.args(["--target", target, "--target-dir", OUT]);
    cargo.arg(format!("--config=target.{target}.linker={:?}", linker()?));
    Ok(cargo)
}

/// Cargo for the target: with rustup's standard library where there is one for it, and otherwise Debian's, which builds
/// `core` and `alloc` from source.
pub fn compiler(target: &str) -> Result<Command> {
    if targets::install(target) {
        return Ok(shell::cargo());
    }
    println!("no rustup target {target}: building core and alloc with Debian's compiler");
    packages::require(&["rustc-web", "rust-web-src", "cargo-web"])?;
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTUP_TOOLCHAIN");
    cargo.env_remove("CARGO");
    cargo.arg("-Zbuild-std=core,alloc");
    Ok(cargo)
}

/// The linker that comes with rustup's compiler, or Debian's.
pub fn linker() -> Result<PathBuf> {
    let sysroot = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let host = shell::output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let lld = Path::new(sysroot.trim()).join("lib/rustlib").join(host.trim()).join("bin/rust-lld");
    if lld.is_file() {
        return Ok(lld);
    }
    packages::require(&["lld"])?;
    Ok("lld".into())
}

/// What an image takes of flash, and of memory with its heap, in bytes.
pub fn size(path: &Path) -> Result<(u64, u64)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut flash, mut memory) = (0, 0);
    for section in object::File::parse(&*bytes)?.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        let has = |flag: u32| sh_flags & u64::from(flag) != 0;
        if !has(elf::SHF_ALLOC) {
            continue;
        }
        let is_loaded = section.kind() != object::SectionKind::UninitializedData;
        flash += if is_loaded { section.size() } else { 0 };
        memory += if has(elf::SHF_WRITE) { section.size() } else { 0 };
    }
    Ok((flash, memory))
}

/// What an image takes, in bytes.
#[derive(Default)]
struct Image {
    code: u64,
    constant: u64,
    variable: u64,
    /// Code by crate.
    parts: BTreeMap<String, u64>,
}

impl Image {
    fn read(path: &Path) -> Result<Image> {
        let bytes = std::fs::read(path)?;
        let file = object::File::parse(&*bytes)?;
        let mut image = Image::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let has = |flag: u32| sh_flags & u64::from(flag) != 0;
            match (has(elf::SHF_ALLOC), has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
                (false, ..) => {}
                (true, true, _) => image.code += section.size(),
                (true, false, false) => image.constant += section.size(),
                (true, false, true) => image.variable += section.size(),
            }
        }
        // The heap is a variable too, but its size is a choice.
        for symbol in file.symbols() {
            let name = rustc_demangle::demangle(symbol.name().unwrap_or_default());
            let name = format!("{name:#}");
            match symbol.kind() {
                SymbolKind::Text => *image.parts.entry(crate_of(&name)).or_default() += symbol.size(),
                SymbolKind::Data if name.ends_with("::HEAP") => image.variable -= symbol.size(),
                _ => {}
            }
        }
        Ok(image)
    }
}

/// The crate of a function: the first name in its path, or that of the type whose method it is.
fn crate_of(path: &str) -> String {
    let start = path.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(0);
    let rest = path[start..].trim_start_matches("dyn ").trim_start_matches("mut ");
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    match name {
        _ if !path.contains("::") => "without a crate (memcpy and the like)".to_owned(),
        "core" | "alloc" | "compiler_builtins" | "__rustc" | "" => CORE.to_owned(),
        // Methods of the language's own types.
        "bool" | "char" | "str" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => CORE.to_owned(),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "f32" | "f64" => CORE.to_owned(),
        name => name.replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_crate_that_wrote_them() {
        let check = |path: &str, expected: &str| assert_eq!(crate_of(path), expected, "{path}");
        check("linerate_stack::tcp::rtt::Rtt::sample", "linerate-stack");
        check("<linerate_serve::http::Server as linerate_serve::service::Service>::start", "linerate-serve");
        check("<&mut linerate_nic::Pool as core::fmt::Debug>::fmt", "linerate-nic");
        check("core::fmt::write", CORE);
        check("<u32 as core::fmt::Display>::fmt", CORE);
        check("memcpy", "without a crate (memcpy and the like)");
    }
}
