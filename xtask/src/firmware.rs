//! Proof that the portable crates need no operating system: images for a bare Cortex-M, linked to machine code, and how
//! much of it each part is.

use crate::{packages, shell};
use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "thumbv7em-none-eabihf";
/// The images, each with what is in it.
const IMAGES: [(&str, &str); 3] =
    [("stack", "the stack alone"), ("http", "stack + HTTP"), ("servers", "stack + HTTP, FTP, iperf3")];
const OUT: &str = "target/firmware";
/// What comes with the compiler.
const CORE: &str = "core, alloc, compiler_builtins";

/// Links the images of `boards/footprint` and prints their sizes.
pub fn run() -> Result<()> {
    let mut cargo = compiler()?;
    cargo.args(["build", "--release", "--locked", "--manifest-path=boards/footprint/Cargo.toml"]);
    cargo.args(["--features=servers", "--target", TARGET, "--target-dir", OUT]);
    cargo.arg(format!("--config=target.{TARGET}.linker={:?}", linker()?));
    shell::run(&mut cargo)?;
    println!(
        "\ncode and data of images for {TARGET}, in bytes (opt-level s, LTO; without heap and stack):\n"
    );
    println!("{:<28}{:>9}{:>9}{:>9}", "", "code", "constant", "variable");
    let mut last = None;
    for (name, title) in IMAGES {
        let path = Path::new(OUT).join(TARGET).join("release").join(name);
        let image = Image::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        println!("{title:<28}{:>9}{:>9}{:>9}", image.code, image.constant, image.variable);
        last = Some(image);
    }
    let Some(image) = last else { return Ok(()) };
    println!("\ncode of the last by crate; what was inlined counts where it ended up:\n");
    let mut parts: Vec<_> = image.parts.into_iter().collect();
    parts.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    for (name, size) in parts {
        println!("{name:<28}{size:>9}");
    }
    Ok(())
}

/// Cargo for the target: with rustup's standard library when it has one for it, and otherwise Debian's, which builds
/// `core` and `alloc` from source.
fn compiler() -> Result<Command> {
    let installed = shell::output(Command::new("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|targets| targets.lines().any(|line| line == TARGET));
    if installed {
        return Ok(shell::cargo());
    }
    println!("no rustup target {TARGET}: building core and alloc with Debian's compiler");
    packages::require(&["rustc-web", "rust-web-src", "cargo-web"])?;
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTUP_TOOLCHAIN");
    cargo.env_remove("CARGO");
    cargo.arg("-Zbuild-std=core,alloc");
    Ok(cargo)
}

/// The linker that comes with rustup's compiler, or Debian's.
fn linker() -> Result<PathBuf> {
    let sysroot = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let host = shell::output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let lld = Path::new(sysroot.trim()).join("lib/rustlib").join(host.trim()).join("bin/rust-lld");
    if lld.is_file() {
        return Ok(lld);
    }
    packages::require(&["lld"])?;
    Ok("lld".into())
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
