//! How often each part of the soft core's image is executed, for the compiler: it lays what is executed together, and what is not apart,
//! and makes its choices of what to inline by that.
//!
//! An image that the compiler has made count does the work that is measured, and sends its counters over the serial line. From these and
//! the compiler's records in the image comes a profile as LLVM reads it, kept beside the board. It fits one compiler: names of functions
//! have its hash in them. For others the image is built without.

use super::{OUT, soft_work, softcore};
use crate::{firmware, shell, targets};
use anyhow::{Context, Result, ensure};
use md5::{Digest, Md5};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The profile, and the compiler that made it.
const PROFILE: &str = "boards/softcore/profile.profdata";
const COMPILER: &str = "boards/softcore/profile.txt";
/// Has this program be the compiler's wrapper (see [`compile`]).
const WRAPPER: &str = "LINERATE_XTASK_COMPILES";
/// Without calls by pointer and sizes of copies: the image has no room for lists of them.
const PLAIN: &str = "-Cllvm-args=-disable-vp=true";

/// What makes 99.9 of 100 counts is hot. With LLVM's 99, requests are cold beside streams, which repeat few instructions often: they take 21,700
/// instructions each in place of 19,700; with 99.95 and more they are fewer still, but what is inlined fills the cache.
const HOT: &str = "-Cllvm-args=-profile-summary-cutoff-hot=999000";

/// The core has LR and SC alone of the A extension. What else the compiler uses of it traps, and takes some 450 clocks.
const ATOMICS: &str = "-Ctarget-feature=-zaamo";

/// The module that sends the counters, in names of functions.
const SENDER: &str = "8softcore8counters";

/// Bytes of the compiler's record of a function, and where the number of its counters is in it: `__llvm_profile_data` of LLVM 19 to 22 on a
/// processor of 32 bits.
const RECORD: usize = 48;
const COUNTERS: usize = 32;

/// Has `cargo` build with the profile, if there is one for this compiler.
pub fn apply(cargo: &mut Command) -> Result<()> {
    let made_by = std::fs::read_to_string(COMPILER).unwrap_or_default();
    let compiler = compiler()?;
    // Debian's is another one.
    let is_rustups = targets::install(softcore::TARGET);
    if made_by.trim() != compiler || !is_rustups {
        println!(
            "{PROFILE} is of {}, and this is another compiler: built without, which is slower; \
             `cargo xtask board softcore profile` makes one for {compiler}",
            made_by.trim()
        );
        return Ok(());
    }
    let path = shell::root().join(PROFILE);
    let profile = format!("-Cprofile-use={}", path.display());
    flags(cargo, &["-Csymbol-mangling-version=v0", &profile, PLAIN, HOT, ATOMICS])
}

/// Makes the profile anew.
pub fn write(hardware: &Path) -> Result<()> {
    let compiler = compiler()?;
    shell::run(Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    let mut cargo = firmware::compiler(softcore::TARGET)?;
    // There is no runtime for this processor, which stable compilers insist on.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    let more = [
        "--cfg=counters",
        "-Cprofile-generate",
        "-Zno-profiler-runtime",
        PLAIN,
        ATOMICS,
        "-Cllvm-args=-enable-name-compression=false",
        "-Clink-arg=--defsym=__llvm_profile_runtime=0",
    ];
    flags(&mut cargo, &more)?;
    let image = softcore::build_image(cargo, &Path::new(OUT).join("counted"))?;
    let counters = soft_work::each(hardware, &image, "counters")?;
    let text = Path::new(OUT).join("softcore-profile.txt");
    let (profile, executed) = text_of(&std::fs::read(&image)?, &counters)?;
    std::fs::write(&text, profile).with_context(|| text.display().to_string())?;
    shell::run(Command::new(profdata()?).args(["merge", "--sparse", "--output", PROFILE]).arg(&text))?;
    std::fs::write(COMPILER, format!("{compiler}\n")).with_context(|| COMPILER.to_owned())?;
    println!("{PROFILE}: {executed} functions; now `cargo xtask board softcore order`");
    Ok(())
}

/// Has `cargo` hand these to the compiler, by way of [`compile`].
fn flags(cargo: &mut Command, flags: &[&str]) -> Result<()> {
    // Paths may have spaces.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let own = std::env::current_exe().context("this program's own path")?;
    cargo.env("RUSTC_WRAPPER", own).env(WRAPPER, "1");
    Ok(())
}

/// The compiler, as its version says.
fn compiler() -> Result<String> {
    let said = shell::output(Command::new("rustc").arg("-vV"))?;
    let field = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").to_owned();
    Ok(format!("rustc {}, LLVM {}", field("release: "), field("LLVM version: ")))
}

/// LLVM's tool, as rustup has it.
fn profdata() -> Result<PathBuf> {
    let path = shell::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let path = Path::new(path.trim()).parent().map(|folder| folder.join("bin/llvm-profdata"));
    path.filter(|path| path.is_file()).context("no llvm-profdata in rustup's llvm-tools")
}

/// What this program does when cargo has it compile, and not the compiler: it does, but our own crates have their names for `-C metadata`, in
/// place of a hash in which the checkout's path is. That goes into names of functions, by which a profile knows them.
pub fn compile() -> Option<ExitCode> {
    std::env::var_os(WRAPPER)?;
    let mut arguments = std::env::args_os().skip(1);
    let rustc = arguments.next()?;
    let status = Command::new(rustc).args(named(arguments.collect())).status();
    let code = status.ok().and_then(|status| status.code()).unwrap_or(1);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The compiler's arguments with that exchanged.
fn named(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.iter().position(|argument| argument == "--crate-name");
    let name = name.and_then(|at| arguments.get(at + 1)?.to_str()).unwrap_or_default().to_owned();
    if name.starts_with("linerate_") || name == softcore::NAME {
        for argument in &mut arguments {
            if argument.to_str().is_some_and(|text| text.starts_with("metadata=")) {
                *argument = format!("metadata={name}").into();
            }
        }
    }
    arguments
}

/// The profile in LLVM's text form, of an image that counts and what it has counted, and how many functions were executed.
fn text_of(image: &[u8], counters: &[Vec<u8>]) -> Result<(String, usize)> {
    let file = object::File::parse(image).context("the image")?;
    let section = |name: &str| {
        let section = file.section_by_name(name).with_context(|| format!("the image has no {name}"))?;
        Ok::<_, anyhow::Error>((section.address(), section.data()?))
    };
    let ((records_at, records), (counters_at, begin)) =
        (section("__llvm_prf_data")?, section("__llvm_prf_cnts")?);
    let names = names_in(section("__llvm_prf_names")?.1)?;
    for counted in counters {
        ensure!(counted.len() == begin.len(), "{} bytes of counters, not {}", counted.len(), begin.len());
    }
    let (mut text, mut executed) = (String::from(":ir\n"), 0);
    for (index, record) in records.chunks_exact(RECORD).enumerate() {
        let (name, hash) = (word(record, 0), word(record, 8));
        // From the record to its counters, and how many they are.
        let (relative, count) = (word(record, 16) as u32, word(record, COUNTERS) as u32 as usize);
        let at = (records_at as u32).wrapping_add((index * RECORD) as u32).wrapping_add(relative);
        let at = at.wrapping_sub(counters_at as u32) as usize;
        ensure!(at + 8 * count <= begin.len(), "record {index} is not as this program expects it");
        let name = names.get(&name).with_context(|| format!("record {index} has no name"))?;
        // What sends the counters is another function in an image that has none.
        if name.contains(SENDER) {
            continue;
        }
        let counts: Vec<u64> = (0..count)
            .map(|counter| counters.iter().map(|counted| word(counted, at + 8 * counter)).sum())
            .collect();
        executed += usize::from(counts.iter().any(|count| *count > 0));
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        text.push_str(&format!("{name}\n{hash}\n{count}\n{}\n\n", counts.join("\n")));
    }
    Ok((text, executed))
}

/// The eight bytes at a place, as little-endian processors have them; what is not there is zero.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let there = bytes.get(at..).unwrap_or_default();
    let len = there.len().min(8);
    word[..len].copy_from_slice(&there[..len]);
    u64::from_le_bytes(word)
}

/// Names by the hash that stands for them: blocks of a length, that again if it were compressed, and names between bytes of 1.
fn names_in(mut bytes: &[u8]) -> Result<BTreeMap<u64, String>> {
    let mut names = BTreeMap::new();
    loop {
        // Blocks are padded.
        let padding = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes = &bytes[padding..];
        if bytes.is_empty() {
            return Ok(names);
        }
        let len = number(&mut bytes).context("the length of names")? as usize;
        let compressed = number(&mut bytes).context("the length of compressed names")?;
        ensure!(compressed == 0 && len <= bytes.len(), "names that this program cannot read");
        let (block, rest) = bytes.split_at(len);
        for name in block.split(|byte| *byte == 1) {
            let name = std::str::from_utf8(name).context("a name")?;
            names.insert(word(&Md5::digest(name), 0), name.to_owned());
        }
        bytes = rest;
    }
}

/// A number of seven bits a byte, the least first (LEB128).
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_crates_are_compiled_under_their_names() {
        let arguments = |name: &str| {
            ["--crate-name", name, "-C", "metadata=0123", "-C", "extra-filename=-0123"].map(OsString::from)
        };
        let exchanged = named(arguments("linerate_wire").to_vec());
        assert_eq!(exchanged[3], "metadata=linerate_wire");
        assert_eq!(exchanged[5], "extra-filename=-0123");
        assert_eq!(named(arguments("serde").to_vec()), arguments("serde"));
        assert!(named(Vec::new()).is_empty());
    }

    #[test]
    fn names_are_found_by_their_hash() {
        let mut bytes = vec![7, 0];
        bytes.extend(b"foo\x01bar\0\0\0");
        // A length of two bytes.
        bytes.extend([0x82, 0x00, 0]);
        bytes.extend(b"ab");
        let names = names_in(&bytes).unwrap();
        // The first eight bytes of acbd18db4cc2f85c…, the MD5 of "foo".
        assert_eq!(names[&0x5cf8_c24c_db18_bdac], "foo");
        assert_eq!(names.into_values().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert!(names_in(&[9, 0, b'a']).is_err() && names_in(&[0x80]).is_err());
        assert!(names_in(&[1, 1, b'a']).is_err());
    }
}
