//! What `/sys` says of the device and its DMA buffer.

use super::error::UioError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where things are: below a root, as in a container that has the host's at another place, or in a test.
#[derive(Clone, Debug)]
pub(super) struct Places {
    root: PathBuf,
}

/// A UIO device.
#[derive(Debug)]
pub(super) struct Found {
    /// For interrupts, and registers unless they are elsewhere.
    pub device: PathBuf,
    /// What to map registers from.
    pub registers: PathBuf,
    /// How many bytes of them.
    pub len: usize,
}

/// A DMA buffer.
#[derive(Debug)]
pub(super) struct FoundBuffer {
    pub name: String,
    pub device: PathBuf,
    pub bus_address: u64,
    pub len: usize,
    /// The device sees the processor's cache.
    pub is_coherent: bool,
    /// See u-dma-buf: how it is mapped.
    pub sync_mode: u64,
}

impl Places {
    pub(super) fn new(root: &Path) -> Self {
        Places { root: root.to_owned() }
    }

    /// The UIO device of this name.
    pub(super) fn find(&self, name: &str) -> Result<Found, UioError> {
        let looked = self.root.join("sys/class/uio");
        let (mut there, mut found) = (Vec::new(), None);
        for entry in entries(&looked)? {
            let its = text(&looked.join(&entry).join("name"))?;
            if its == name && found.replace(entry).is_some() {
                return Err(UioError::Ambiguous(name.to_owned()));
            }
            there.push(its);
        }
        let Some(entry) = found else {
            return Err(UioError::NoSuchDevice { name: name.to_owned(), there, looked });
        };
        let (class, device) = (looked.join(&entry), self.root.join("dev").join(&entry));
        let size = class.join("maps/map0/size");
        if size.exists() {
            return Ok(Found { registers: device.clone(), device, len: number(&size)? as usize });
        }
        // A UIO driver on a bus that maps registers by itself exports none.
        let registers = class.join("device/resource0");
        let len = fs::metadata(&registers).map_err(|source| failed("looking at", &registers, source))?.len();
        Ok(Found { device, registers, len: len as usize })
    }

    /// The DMA buffer of this name if there is one, or else the first.
    pub(super) fn find_buffer(&self, name: &str) -> Result<FoundBuffer, UioError> {
        let classes = ["u-dma-buf", "udmabuf"].map(|class| self.root.join("sys/class").join(class));
        for class in &classes {
            let names = entries(class)?;
            let Some(found) = names.iter().find(|its| *its == name).or(names.first()) else { continue };
            let value = |file: &str| number(&class.join(found).join(file));
            return Ok(FoundBuffer {
                name: found.clone(),
                device: self.root.join("dev").join(found),
                bus_address: value("phys_addr")?,
                len: value("size")? as usize,
                is_coherent: value("dma_coherent").unwrap_or(0) != 0,
                sync_mode: value("sync_mode")?,
            });
        }
        let [looked, _] = classes;
        Err(UioError::NoBuffer { looked })
    }
}

/// Names in a folder, in order; none if it is not there.
fn entries(folder: &Path) -> Result<Vec<String>, UioError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed("reading", folder, source)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> =
        names.collect::<io::Result<_>>().map_err(|source| failed("reading", folder, source))?;
    names.sort();
    Ok(names)
}

fn text(path: &Path) -> Result<String, UioError> {
    let text = fs::read_to_string(path).map_err(|source| failed("reading", path, source))?;
    Ok(text.trim().to_owned())
}

/// A number, decimal or with 0x.
fn number(path: &Path) -> Result<u64, UioError> {
    let text = text(path)?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| UioError::NotANumber { path: path.to_owned(), text })
}

/// The error of a step.
pub(super) fn failed(step: &'static str, path: &Path, source: io::Error) -> UioError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => UioError::Permission(path.to_owned()),
        _ => UioError::Io { step, path: path.to_owned(), source },
    }
}
