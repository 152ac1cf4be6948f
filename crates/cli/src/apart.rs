//! What a command writes must be no file that it reads, and none that it writes a second time: the first would be gone.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// An option that would overwrite what is read, or what another option writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clash {
    /// The option.
    pub option: &'static str,
    /// The file that it was given.
    pub file: PathBuf,
    /// What it should have been, to follow "expected".
    pub expected: String,
}

/// Looks at files before anything is written: those that are read, and those that options write.
///
/// # Errors
///
/// The first option whose file is one of those before it.
pub fn apart(reads: &[&Path], writes: &[(&'static str, Option<&Path>)]) -> Result<(), Clash> {
    let written: Vec<(&'static str, &Path)> =
        writes.iter().filter_map(|(option, file)| Some((*option, (*file)?))).collect();
    for (at, (option, file)) in written.iter().enumerate() {
        let clash = |what: String| Clash {
            option,
            file: (*file).to_owned(),
            expected: format!("a file other than {what}"),
        };
        if let Some(read) = reads.iter().find(|read| is_same(read, file)) {
            return Err(clash(format!("{}, which is read", read.display())));
        }
        let before = written.iter().take(at).find(|(_, other)| is_same(other, file));
        if let Some((other, _)) = before {
            return Err(clash(format!("that of {other}")));
        }
    }
    Ok(())
}

/// Whether two paths lead to one file, by whatever names. A device or a pipe keeps nothing that could be lost.
fn is_same(one: &Path, other: &Path) -> bool {
    let inode = |about: &Metadata| (about.dev(), about.ino());
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && inode(&one) == inode(&other),
        (Err(_), Err(_)) => place(one) == place(other),
        _ => false,
    }
}

/// Where a file would be made that is not there yet.
fn place(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()).join(file.file_name().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_by_whatever_name_and_devices_never_are() {
        let folder = std::env::temp_dir().join(format!("linerate-apart-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).unwrap();
        let [read, link, hard, new] =
            ["read.toml", "link.toml", "hard.toml", "new.svg"].map(|name| folder.join(name));
        fs::write(&read, "kept").unwrap();
        std::os::unix::fs::symlink(&read, &link).unwrap();
        fs::hard_link(&read, &hard).unwrap();
        let detour = folder.join("below/../new.svg");
        let null = Path::new("/dev/null");
        let check = |writes: &[&Path], expected: Option<&str>| {
            let options = ["--plot", "--pcap"];
            let writes: Vec<_> = options.into_iter().zip(writes.iter().map(|file| Some(*file))).collect();
            let found = apart(&[&read], &writes).err();
            let told = found.as_ref().map(|clash| format!("{} {}", clash.option, clash.expected));
            let expected = expected.map(|text| text.replace("READ", &read.display().to_string()));
            assert_eq!(told, expected, "{writes:?}");
        };
        check(&[&read], Some("--plot a file other than READ, which is read"));
        check(&[&new, &link], Some("--pcap a file other than READ, which is read"));
        check(&[&hard], Some("--plot a file other than READ, which is read"));
        check(&[&new, &detour], Some("--pcap a file other than that of --plot"));
        check(&[&new], None);
        check(&[null, null], None);
        apart(&[null], &[("--plot", Some(null)), ("--pcap", None)]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
