//! Verilates and compiles each block of `rtl/` that has a `block.toml`, where Verilator is there; otherwise the crate is built
//! without blocks, and says so when one is opened.
//!
//! Libraries are kept under `target/rtl/lib` by the hash of what they are made of, so that the profiles of cargo share them.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// `block.toml`: what a block is made of. Keys that other tools read are left out here.
#[derive(Clone, Deserialize)]
struct Block {
    top: String,
    /// In the order of compilation, from `rtl/`.
    sources: Vec<String>,
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
    /// Compiled only with this feature of the crate.
    feature: Option<String>,
}

/// A port of a verilated model.
struct Port {
    name: String,
    bits: u32,
    is_output: bool,
}

fn main() -> Result<()> {
    println!("cargo::rustc-check-cfg=cfg(verilated)");
    for name in ["VERILATOR_ROOT", "LINERATE_RTL_ONLY", "LINERATE_RTL_WIDTHS", "LINERATE_RTL_DIR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    // Another folder with the same layout: what the mutation run sets.
    let rtl = env::var("LINERATE_RTL_DIR").map_or_else(|_| root.join("rtl"), PathBuf::from);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let Some(verilator) = verilator(&root) else {
        return Ok(fs::write(out.join("blocks.rs"), "const BLOCKS: &[Entry] = &[];\n")?);
    };
    println!("cargo::rustc-cfg=verilated");
    println!("cargo::rerun-if-changed={}", rtl.display());
    let kept = root.join("target/rtl/lib");
    let mut code = String::new();
    let mut entries = String::new();
    for (name, width, block) in blocks(&rtl)? {
        let library = Library::build(&verilator, &rtl, &kept, &name, width, &block)
            .with_context(|| format!("rtl/{}/block.toml", name))?;
        library.write(&mut code, &mut entries);
    }
    runtime(&verilator, &kept)?;
    println!("cargo::rustc-link-lib=dylib=stdc++");
    fs::write(out.join("blocks.rs"), format!("{code}const BLOCKS: &[Entry] = &[\n{entries}];\n"))?;
    Ok(())
}

/// Verilator's folder: the variable that Verilator itself knows, or what `cargo xtask rtl setup` installed.
fn verilator(root: &Path) -> Option<PathBuf> {
    if let Ok(found) = env::var("VERILATOR_ROOT") {
        return Some(PathBuf::from(found));
    }
    let libraries = root.join("target/rtl/venv/lib");
    println!("cargo::rerun-if-changed={}", libraries.display());
    let python = fs::read_dir(libraries).ok()?.next()?.ok()?.path();
    Some(python.join("site-packages/verilator")).filter(|found| found.is_dir())
}

/// Every block by name, with the width of its stream where one is asked for beside the default.
fn blocks(rtl: &Path) -> Result<Vec<(String, Option<u32>, Block)>> {
    let only = env::var("LINERATE_RTL_ONLY").unwrap_or_default();
    let widths: Vec<Option<u32>> = env::var("LINERATE_RTL_WIDTHS")
        .unwrap_or_default()
        .split(',')
        .filter_map(|width| width.parse().ok().map(Some))
        .collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(rtl)? {
        let folder = entry?;
        let name = folder.file_name().to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(folder.path().join("block.toml")) else { continue };
        if !only.is_empty() && !only.split(',').any(|wanted| wanted == name) {
            continue;
        }
        let block: Block = toml::from_str(&text).with_context(|| format!("rtl/{name}/block.toml"))?;
        let wanted = |feature: &String| env::var(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_ok();
        if !block.feature.as_ref().is_none_or(wanted) {
            continue;
        }
        for width in std::iter::once(None).chain(widths.iter().copied()) {
            found.push((name.clone(), width, block.clone()));
        }
    }
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    Ok(found)
}

/// The part of Verilator that all models share.
fn runtime(verilator: &Path, kept: &Path) -> Result<()> {
    let mut hash = SipHasher13::new();
    hash.write(verilator.to_string_lossy().as_bytes());
    let folder = kept.join(format!("verilated-{:016x}", hash.finish()));
    if !folder.join("done").exists() {
        let include = verilator.join("include");
        compiler(verilator, &folder)
            .file(include.join("verilated.cpp"))
            .file(include.join("verilated_threads.cpp"))
            .try_compile("verilated")?;
        fs::write(folder.join("done"), "")?;
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=static=verilated");
    Ok(())
}

fn compiler(verilator: &Path, folder: &Path) -> cc::Build {
    let include = verilator.join("include");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cargo_metadata(false)
        .warnings(false)
        .opt_level(3)
        .debug(false)
        .std("c++17")
        .define("VERILATOR", "1")
        .define("VM_COVERAGE", "0")
        .define("VM_SC", "0")
        .define("VM_TRACE", "0")
        .flag("-pthread")
        .include(&include)
        .include(include.join("vltstd"))
        .include(folder)
        .out_dir(folder);
    build
}

/// A verilated and compiled block.
struct Library {
    /// What Rust opens it by.
    name: String,
    /// The same as an identifier.
    symbol: String,
    folder: PathBuf,
    ports: Vec<Port>,
}

impl Library {
    fn build(
        verilator: &Path,
        rtl: &Path,
        kept: &Path,
        name: &str,
        width: Option<u32>,
        block: &Block,
    ) -> Result<Library> {
        let symbol = width.map_or_else(|| name.to_owned(), |width| format!("{name}_{width}"));
        let mut parameters: Vec<String> =
            block.parameters.iter().map(|(key, value)| format!("-G{key}={value}")).collect();
        parameters.extend(width.map(|width| format!("-GDATA_W={width}")));
        let sources: Vec<PathBuf> = block.sources.iter().map(|source| rtl.join(source)).collect();
        let mut hash = SipHasher13::new();
        hash.write(verilator.to_string_lossy().as_bytes());
        hash.write(parameters.join(" ").as_bytes());
        hash.write(include_bytes!("build.rs"));
        for source in &sources {
            hash.write(&fs::read(source).with_context(|| format!("cannot read {}", source.display()))?);
        }
        let folder = kept.join(format!("{symbol}-{:016x}", hash.finish()));
        let header = folder.join(format!("V{symbol}.h"));
        if !folder.join("done").exists() {
            fs::create_dir_all(&folder)?;
            let output = Command::new(verilator.join("bin/verilator"))
                .env("VERILATOR_ROOT", verilator)
                .args(["--cc", "-Wall", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert"])
                // What another program wrote (a netlist) has no style.
                .args(env::var("LINERATE_RTL_DIR").map(|_| "-Wno-fatal"))
                .args(["--prefix", &format!("V{symbol}"), "--top", &block.top, "--Mdir"])
                .arg(&folder)
                .args(&parameters)
                .args(&sources)
                .output()
                .context("cannot run Verilator")?;
            if !output.status.success() {
                bail!("{}", String::from_utf8_lossy(&output.stderr));
            }
            let ports = ports(&fs::read_to_string(&header)?);
            fs::write(folder.join("glue.cpp"), glue(&symbol, &ports))?;
            let mut build = compiler(verilator, &folder);
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "cpp") {
                    build.file(path);
                }
            }
            build.try_compile(&symbol)?;
            fs::write(folder.join("done"), "")?;
        }
        let ports = ports(&fs::read_to_string(&header)?);
        let name = width.map_or_else(|| name.to_owned(), |width| format!("{name}@{width}"));
        Ok(Library { name, symbol, folder, ports })
    }

    /// Writes what Rust must know of it.
    fn write(&self, code: &mut String, entries: &mut String) {
        let Library { name, symbol, folder, ports } = self;
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static={symbol}");
        // Writing to a string cannot fail.
        let _ = write!(
            code,
            "unsafe extern \"C\" {{\n    safe fn rtl_{symbol}_new() -> *mut c_void;\n    \
             fn rtl_{symbol}_delete(model: *mut c_void);\n    fn rtl_{symbol}_eval(model: *mut c_void);\n    \
             fn rtl_{symbol}_port(model: *mut c_void, index: u32) -> *mut c_void;\n}}\n"
        );
        let list: String = ports
            .iter()
            .map(|Port { name, bits, is_output }| {
                format!("PortInfo {{ name: {name:?}, bits: {bits}, is_output: {is_output} }}, ")
            })
            .collect();
        let _ = writeln!(
            entries,
            "    Entry {{ name: {name:?}, new: rtl_{symbol}_new, delete: rtl_{symbol}_delete, eval: rtl_{symbol}_eval, \
             port: rtl_{symbol}_port, ports: &[{list}] }},"
        );
    }
}

/// The ports that a model's header declares: `VL_IN8(&name,msb,lsb);`, with the number of words behind for wide ones.
fn ports(header: &str) -> Vec<Port> {
    header
        .lines()
        .filter_map(|line| {
            let line = line.trim();
            let is_output = line.starts_with("VL_OUT");
            let (_, arguments) = line.split_once("(&").filter(|_| is_output || line.starts_with("VL_IN"))?;
            let mut arguments = arguments.trim_end_matches(");").split(',');
            let name = arguments.next()?.to_owned();
            let (msb, lsb): (u32, u32) = (arguments.next()?.parse().ok()?, arguments.next()?.parse().ok()?);
            Some(Port { name, bits: msb - lsb + 1, is_output })
        })
        .collect()
}

/// What stands between the model's class and Rust.
fn glue(symbol: &str, ports: &[Port]) -> String {
    let cases: String = ports
        .iter()
        .enumerate()
        .map(|(index, port)| format!("    case {index}: return &model->{};\n", port.name))
        .collect();
    format!(
        "#include \"V{symbol}.h\"\n\
         struct rtl_{symbol} {{ VerilatedContext context; V{symbol} model{{&context}}; }};\n\
         extern \"C\" void* rtl_{symbol}_new() {{ return new rtl_{symbol}; }}\n\
         extern \"C\" void rtl_{symbol}_delete(void* handle) {{ auto* it = static_cast<rtl_{symbol}*>(handle); it->model.final(); delete it; }}\n\
         extern \"C\" void rtl_{symbol}_eval(void* handle) {{ static_cast<rtl_{symbol}*>(handle)->model.eval(); }}\n\
         extern \"C\" void* rtl_{symbol}_port(void* handle, unsigned index) {{\n  auto* model = &static_cast<rtl_{symbol}*>(handle)->model;\n  \
         switch (index) {{\n{cases}    default: return nullptr;\n  }}\n}}\n"
    )
}
