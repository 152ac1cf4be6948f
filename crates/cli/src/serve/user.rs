//! Whose rights the server has once everything is open: those of a user that may do little, not those of root.

use super::turn::Process;
use crate::output;
use crate::settings::Settings;
use linerate_linux::files::AnyFiles;
use linerate_linux::privileges::{self, Account, AccountError, GiveUpError, Kept, Need};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The user that a server started by root becomes if nobody says otherwise.
const NOBODY: &str = "nobody";

/// Why the process cannot have the rights of the user.
#[derive(Debug)]
pub enum UserError {
    /// There is no such user.
    Account(AccountError),
    /// `--user` without the rights of root.
    NotRoot(String),
    /// The user that was asked for cannot use the directory.
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The user.
        user: String,
        /// What would be needed of it.
        need: Need,
    },
    /// The system does not let this process act for the user.
    Refused {
        /// The user.
        user: String,
        /// What the system said.
        source: io::Error,
    },
    /// A step on the way failed.
    GiveUp(GiveUpError),
}

impl UserError {
    /// Whether what was said is at fault.
    pub fn is_usage(&self) -> bool {
        !matches!(self, UserError::Refused { .. } | UserError::GiveUp(_))
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserError::Account(error) => write!(f, "--user: {error}"),
            UserError::NotRoot(user) => {
                write!(
                    f,
                    "--user {user}: only root can become another user; without --user the server runs as you"
                )
            }
            UserError::Directory { dir, user, need } => {
                let (verb, mode) = match need {
                    Need::Read => ("read", "rx"),
                    Need::Write => ("change", "rwx"),
                };
                write!(
                    f,
                    "user {user} may not {verb} {dir}: give it that right (as by setfacl -m u:{user}:{mode} {dir}), or \
                     name another user with --user",
                    dir = dir.display()
                )
            }
            UserError::Refused { user, source } => {
                write!(f, "this process may not act for user {user}: {source}")
            }
            UserError::GiveUp(error) => write!(f, "the rights of root cannot be given up: {error}"),
        }
    }
}

impl std::error::Error for UserError {}

/// The user to become; `None` to stay who we are.
///
/// Who was named must be able to use the directory. Else it is nobody if nobody can, or else the directory's owner; and
/// where only root can, root it is, with a warning.
pub fn choose(settings: &Settings) -> Result<Option<Account>, UserError> {
    let Some(name) = &settings.user else {
        return Ok(if privileges::is_root() { default_user(settings) } else { None });
    };
    let account = Account::find(name).map_err(UserError::Account)?;
    if account.uid == privileges::user() {
        return Ok(None);
    }
    if !privileges::is_root() {
        return Err(UserError::NotRoot(name.clone()));
    }
    if let Some(dir) = &settings.dir {
        let need = need(settings);
        match privileges::allows(&account, dir, need) {
            Ok(true) => {}
            Ok(false) => return Err(UserError::Directory { dir: dir.clone(), user: name.clone(), need }),
            Err(source) => return Err(UserError::Refused { user: name.clone(), source }),
        }
    }
    Ok(Some(account))
}

/// Becomes that user. A configuration file that he cannot read is told now rather than at the first SIGHUP.
pub fn adopt(account: &Account, kept: Kept, config: Option<&Path>) -> Result<(), UserError> {
    privileges::become_user(account, kept).map_err(UserError::GiveUp)?;
    if let Some(path) = config.filter(|path| !privileges::can_read(path)) {
        log::warn!(
            "user {} may not read {}: SIGHUP will not be able to read it again",
            account.name,
            path.display()
        );
    }
    Ok(())
}

impl Process {
    /// Warns where the path of the directory leads to another one by now, as when it was a link to a release: what is served
    /// is what was opened.
    pub(super) fn check_directory(&self) {
        if let (AnyFiles::Directory(files), Some(dir)) = (&self.worker.core.files, &self.banner.dir)
            && let Some(warning) = moved(dir, files.is_at(dir))
        {
            log::warn!("{warning}");
        }
    }

    /// Warns where FTP users may change the directory by the settings, but this process has no right to.
    pub(super) fn check_uploads(&self, settings: &Settings) {
        let (AnyFiles::Directory(files), Some(dir)) = (&self.worker.core.files, &settings.dir) else {
            return;
        };
        if !settings.writable || files.may_change() {
            return;
        }
        let dir = dir.display();
        match &self.banner.user {
            Some(user) => log::warn!(
                "uploads will fail: user {user} may not change {dir}; give it that right (as by setfacl -m u:{user}:rwx \
                 {dir}), or start again with another --user"
            ),
            None => log::warn!("uploads will fail: the user of this process may not change {dir}"),
        }
    }
}

/// What there is to say of a directory whose path leads to it, to another one, or nowhere.
fn moved(dir: &Path, is_at: io::Result<bool>) -> Option<String> {
    let dir = dir.display();
    let stays = "the one that was opened is served until the next start";
    match is_at {
        Ok(true) => None,
        Ok(false) => Some(format!("dir: {dir} leads to another directory now; {stays}")),
        // The server's user need not reach what lies above the directory, so that he cannot tell.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(error) => Some(format!("dir: {dir} cannot be opened any more ({error}); {stays}")),
    }
}

/// What of the directory is needed. Where its file system is read-only no right helps to change it, not even root's.
fn need(settings: &Settings) -> Need {
    let is_fixed = settings.dir.as_deref().is_some_and(privileges::is_read_only);
    if settings.writable && !is_fixed { Need::Write } else { Need::Read }
}

fn default_user(settings: &Settings) -> Option<Account> {
    let nobody = Account::find(NOBODY).unwrap_or_else(|_| Account {
        name: NOBODY.to_owned(),
        uid: 65534,
        gid: 65534,
        groups: vec![65534],
    });
    let Some(dir) = &settings.dir else {
        // Only to see whether this user namespace has a nobody.
        return privileges::allows(&nobody, Path::new("/"), Need::Read).is_ok().then_some(nobody);
    };
    let need = need(settings);
    let can = |account: &Account| privileges::allows(account, dir, need).unwrap_or(false);
    if can(&nobody) {
        return Some(nobody);
    }
    let verb = if need == Need::Write { "change" } else { "read" };
    let owner = privileges::owner(dir).ok().filter(|uid| *uid != 0);
    let owner = owner.and_then(|uid| Account::find(&uid.to_string()).ok()).filter(can);
    match &owner {
        Some(owner) => output::note(format_args!(
            "User {NOBODY} may not {verb} {}; the server runs as its owner, {}.",
            dir.display(),
            owner.name
        )),
        None => log::warn!(
            "only root may {verb} {}, so the server keeps the rights of root; give the directory to a user, and name him \
             with --user",
            dir.display()
        ),
    }
    owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_linux::files::{WorkerConfig, WorkerFiles};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_that_was_replaced_is_told() {
        let place = std::env::temp_dir().join(format!("linerate-moved-{}", std::process::id()));
        let (one, two, link) = (place.join("one"), place.join("two"), place.join("current"));
        std::fs::create_dir_all(&one).unwrap();
        std::fs::create_dir_all(&two).unwrap();
        symlink(&one, &link).unwrap();
        let files = WorkerFiles::start(&link, WorkerConfig::default()).unwrap();
        let told = || moved(&link, files.is_at(&link));
        assert_eq!(told(), None);
        std::fs::remove_file(&link).unwrap();
        let gone = told().unwrap();
        assert!(gone.contains("cannot be opened any more (No such file"), "{gone}");
        symlink(&two, &link).unwrap();
        let other = told().unwrap();
        assert!(other.contains("leads to another directory now"), "{other}");
        assert_eq!(moved(&one, files.is_at(&one)), None);
        // Its user cannot look, which says nothing.
        assert_eq!(moved(&link, Err(io::ErrorKind::PermissionDenied.into())), None);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
