//! Giving up the rights of root once everything that needs them is open.
//!
//! Order of calls: [`refuse_new`] before there are threads, [`allows`] as often as wanted, then [`become_user`] once, from the thread that opened the devices.

use crate::sys::ids;
use rustix::fs::{Access, AtFlags, Mode, OFlags, StatVfsMountFlags};
use rustix::process::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A user with his groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The name, or the number where there is none.
    pub name: String,
    /// The user's number; 0 is root.
    pub uid: u32,
    /// The first group.
    pub gid: u32,
    /// All groups, the first one included.
    pub groups: Vec<u32>,
}

/// Why there is no such account.
#[derive(Debug)]
pub enum AccountError {
    /// `/etc/passwd` does not have it.
    Unknown(String),
    /// The account files cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccountError::Unknown(name) => {
                write!(
                    f,
                    "there is no user {name} in /etc/passwd; a number, as 65534 or 65534:65534, is taken as it is"
                )
            }
            AccountError::Unreadable(error) => write!(f, "/etc/passwd cannot be read: {error}"),
        }
    }
}

impl std::error::Error for AccountError {}

impl Account {
    /// The account `text` names: a name in `/etc/passwd`, a user's number, or numbers of user and group as `UID:GID`.
    pub fn find(text: &str) -> Result<Account, AccountError> {
        if let Some((uid, gid)) = text.split_once(':')
            && let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse())
        {
            return Ok(Account { name: text.to_owned(), uid, gid, groups: vec![gid] });
        }
        let users = std::fs::read_to_string("/etc/passwd").map_err(AccountError::Unreadable);
        let number: Option<u32> = text.parse().ok();
        let users = match (users, number) {
            // Where there are no accounts, as in a container of one file, a number is enough.
            (Err(_), Some(_)) => String::new(),
            (users, _) => users?,
        };
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        find_in(&users, &groups, text)
            .or_else(|| {
                let uid = number?;
                Some(Account { name: text.to_owned(), uid, gid: uid, groups: vec![uid] })
            })
            .ok_or_else(|| AccountError::Unknown(text.to_owned()))
    }
}

/// The account by name or number, from the texts of `/etc/passwd` and `/etc/group`.
fn find_in(users: &str, groups: &str, wanted: &str) -> Option<Account> {
    let account = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let uid: u32 = fields.nth(1)?.parse().ok()?;
        let gid: u32 = fields.next()?.parse().ok()?;
        Some((name.to_owned(), uid, gid))
    };
    let (name, uid, gid) = users
        .lines()
        .filter_map(account)
        .find(|(name, uid, _)| name == wanted || Ok(*uid) == wanted.parse::<u32>())?;
    let group_with = |line: &str| {
        let mut fields = line.split(':');
        let gid: u32 = fields.nth(2)?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == name).then_some(gid)
    };
    let mut all = vec![gid];
    all.extend(groups.lines().filter_map(group_with).filter(|other| *other != gid));
    Some(Account { name, uid, gid, groups: all })
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The number of the user whose rights the process has.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The owner of a file or directory.
pub fn owner(path: &Path) -> io::Result<u32> {
    Ok(rustix::fs::stat(path)?.st_uid)
}

/// What of a directory is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Files in it are read.
    Read,
    /// Files in it are made, too.
    Write,
}

/// Whether `account` could use the directory at `path`, as one whose root is opened by us and handed over: what lies above
/// it does not matter.
///
/// # Errors
/// When this process may not act for the account, as in a user namespace that does not have it; or when there is no such
/// directory.
pub fn allows(account: &Account, path: &Path, need: Need) -> io::Result<bool> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty())?;
    as_account(account, move || {
        let mut access = Access::READ_OK | Access::EXEC_OK;
        if need == Need::Write {
            access |= Access::WRITE_OK;
        }
        rustix::fs::accessat(&dir, ".", access, AtFlags::empty()).is_ok()
    })
}

/// Whether the file system at `path` is mounted read-only, as far as can be told.
pub fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Asks a question with the rights of `account`, in a thread that has them for itself and ends with the answer.
fn as_account(account: &Account, question: impl FnOnce() -> bool + Send) -> io::Result<bool> {
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    let groups: Vec<Gid> = account.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    std::thread::scope(|scope| {
        let asked = scope.spawn(move || {
            thread::set_thread_groups(&groups)?;
            thread::set_thread_res_gid(gid, gid, gid)?;
            thread::set_thread_res_uid(uid, uid, uid)?;
            Ok(question())
        });
        asked.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asked has panicked")))
    })
}

/// Rights that outlive the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Taking back addresses from an interface that outlives the process (CAP_NET_ADMIN).
    pub net_admin: bool,
}

impl Kept {
    fn capabilities(self) -> CapabilitySet {
        let mut set = CapabilitySet::empty();
        set.set(CapabilitySet::NET_ADMIN, self.net_admin);
        set
    }
}

/// Which step of giving up rights failed. The process must end then, as it may have some rights and lack others.
#[derive(Debug)]
pub struct GiveUpError {
    /// What was being done.
    pub step: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for GiveUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.step, self.source)
    }
}

impl std::error::Error for GiveUpError {}

/// Whether [`become_user`] has come to its end.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Whether the process has become another user since it began.
pub(crate) fn were_given_up() -> bool {
    GIVEN_UP.load(Ordering::Acquire)
}

/// Refuses new privileges to the calling thread, to all that it starts from now on, and to programs that they might start. To
/// be called before any thread is there, as the system has no way to do it for all of them later.
pub fn refuse_new() -> io::Result<()> {
    Ok(thread::set_no_new_privs(true)?)
}

/// Makes all threads those of `account`, with no capability but, in the calling thread, those of `kept`. There is no way
/// back.
pub fn become_user(account: &Account, kept: Kept) -> Result<(), GiveUpError> {
    let step = |step, result: io::Result<()>| result.map_err(|source| GiveUpError { step, source });
    let keeps = kept != Kept::default();
    step("refusing new privileges", refuse_new())?;
    step("keeping capabilities", thread::set_keep_capabilities(keeps).map_err(Into::into))?;
    step("changing the groups", ids::set_groups(&account.groups))?;
    step("changing the group", ids::set_group(account.gid))?;
    step("changing the user", ids::set_user(account.uid))?;
    let set = kept.capabilities();
    let sets = CapabilitySets { effective: set, permitted: set, inheritable: CapabilitySet::empty() };
    step("giving up capabilities", thread::set_capabilities(None, sets).map_err(Into::into))?;
    GIVEN_UP.store(true, Ordering::Release);
    Ok(())
}

/// Whether the file at `path` can be read with the rights that the process has now.
pub fn can_read(path: &Path) -> bool {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nbroken line\neric:x:1000:100::/home/eric:/bin/sh\n\
                         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
    const GROUPS: &str = "root:x:0:\nusers:x:100:eric\nmusic:x:29:anna,eric\nempty:x:30:\n";

    #[test]
    fn accounts_are_found_by_name_and_number() {
        let eric = find_in(USERS, GROUPS, "eric").unwrap();
        assert_eq!((eric.uid, eric.gid, &eric.groups[..]), (1000, 100, &[100, 29][..]));
        assert_eq!(find_in(USERS, GROUPS, "1000").unwrap(), eric);
        assert_eq!(find_in(USERS, "", "nobody").unwrap().groups, [65534]);
        assert!(find_in(USERS, GROUPS, "anna").is_none() && find_in(USERS, GROUPS, "").is_none());
        let pair = Account::find("4000000:4000001").unwrap();
        assert_eq!((pair.uid, pair.gid), (4_000_000, 4_000_001));
        assert_eq!(Account::find("4000000").unwrap().uid, 4_000_000);
        let error = Account::find("no such user").unwrap_err().to_string();
        assert!(error.contains("no such user") && error.contains("/etc/passwd"), "{error}");
    }

    #[test]
    fn directories_are_asked_for_with_the_rights_of_the_account() {
        if !is_root() {
            return;
        }
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let dir = std::env::temp_dir().join(format!("linerate-privileges-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("served")).unwrap();
        let nobody = Account { name: "nobody".to_owned(), uid: 65534, gid: 65534, groups: vec![65534] };
        let other = Account { uid: 4000, gid: 4000, groups: vec![4000, 4001], ..nobody.clone() };
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let served = dir.join("served");
        // What lies above does not matter.
        mode(&dir, 0o700);
        mode(&served, 0o755);
        assert!(allows(&nobody, &served, Need::Read).unwrap());
        assert!(!allows(&nobody, &served, Need::Write).unwrap());
        mode(&served, 0o700);
        assert!(!allows(&nobody, &served, Need::Read).unwrap());
        // A supplementary group counts.
        chown(&served, Some(0), Some(4001)).unwrap();
        mode(&served, 0o770);
        assert!(allows(&other, &served, Need::Write).unwrap());
        assert!(!allows(&nobody, &served, Need::Read).unwrap());
        // The rights of the process are what they were.
        assert!(is_root() && std::fs::read_dir(&served).is_ok());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
