//! Other people's servers: Debian packages, unpacked into a folder and not installed, so that no service of the machine starts
//! or changes and two FTP servers, which exclude each other as packages, are there at once.

use crate::files::Files;
use crate::rows::Contender;
use anyhow::{Context, Result, bail};
use linerate_lab::measure::place::{SERVER, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The password `bench`, as `linerate hash-password` hashes it: about 10 ms with each login.
pub const HASH: &str =
    "$argon2id$v=19$m=4096,t=2,p=1$geBMCV9m6hzQzYfeZxZ8rQ$XyqH2e3Rhd1KoBJeGmBwaWxJeXy7gRPN62I4qCVKl1o";

/// The password `bench` as MD5 hashes it (crypt, `$1$`): less than a millisecond. pure-ftpd's user of downloads has it: to be anonymous
/// there takes an account `ftp` of the machine.
const QUICK_HASH: &str = "$1$benchers$nLcSur.l22Sfe39irRngo.";

/// A peer: its package, its program, and a library that it needs and machines may lack.
struct Package {
    contender: Contender,
    name: &'static str,
    program: &'static str,
    libraries: &'static [&'static str],
}

const PACKAGES: [Package; 4] = [
    Package {
        contender: Contender::Nginx,
        name: "nginx",
        program: "usr/sbin/nginx",
        libraries: &["libpcre2-8-0", "libssl3", "zlib1g", "libcrypt1"],
    },
    Package {
        contender: Contender::Lighttpd,
        name: "lighttpd",
        program: "usr/sbin/lighttpd",
        libraries: &["libnettle8", "libpcre2-8-0", "libxxhash0", "libcrypt1"],
    },
    Package {
        contender: Contender::Vsftpd,
        name: "vsftpd",
        program: "usr/sbin/vsftpd",
        libraries: &["libwrap0", "libnsl2", "libtirpc3", "libcap2", "libpam0g", "libssl3"],
    },
    Package {
        contender: Contender::PureFtpd,
        name: "pure-ftpd",
        program: "usr/sbin/pure-ftpd",
        libraries: &["libcap2", "libpam0g", "libssl3", "libcrypt1"],
    },
];

/// Where the packages are unpacked.
#[derive(Debug)]
pub struct Peers(PathBuf);

impl Peers {
    /// In this folder.
    pub fn new(folder: &Path) -> Result<Peers> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Peers(folder.canonicalize()?))
    }

    /// Fetches and unpacks what a contender needs and is not there; what is built goes to `built`.
    pub fn fetch(&self, contender: Contender, built: &Path) -> Result<()> {
        match contender {
            Contender::Gvisor => return gvisor(built),
            Contender::Lwip => {
                run(Command::new("benches/lwip/build.sh").arg(built.join("lwip")))
                    .context("lwIP's peer is not there")?;
                return Ok(());
            }
            _ => {}
        }
        let Some(package) = PACKAGES.iter().find(|package| package.contender == contender) else {
            return Ok(());
        };
        let root = self.0.join(package.name);
        let program = root.join(package.program);
        if !program.exists() {
            self.unpack(package.name, &root)?;
        }
        if !missing(&root, &program)?.is_empty() {
            for library in package.libraries {
                self.unpack(library, &root)?;
            }
        }
        let missing = missing(&root, &program)?;
        if !missing.is_empty() {
            bail!("{} lacks libraries: {}", program.display(), missing.join(", "));
        }
        Ok(())
    }

    fn unpack(&self, name: &str, root: &Path) -> Result<()> {
        fs::create_dir_all(root)?;
        let mut download = Command::new("apt-get");
        download.args(["-qq", "download", name]).current_dir(&self.0);
        if run(&mut download).is_err() {
            // The lists of packages may be old, or not there.
            let _ = run(Command::new("apt-get").args(["-qq", "update"]));
            run(&mut download).with_context(|| format!("Debian package {name} cannot be fetched"))?;
        }
        for entry in fs::read_dir(&self.0)?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.starts_with(&format!("{name}_")) && file.ends_with(".deb") {
                run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(root))?;
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// The program of a contender.
    fn program(&self, contender: Contender) -> PathBuf {
        let package = PACKAGES.iter().find(|package| package.contender == contender);
        package.map_or_else(PathBuf::new, |package| self.0.join(package.name).join(package.program))
    }

    /// The program of a contender, its arguments and its environment, with its settings written.
    pub fn command(&self, contender: Contender, root: &Path, files: &Files) -> Result<Launch> {
        let program = self.program(contender);
        let package = PACKAGES.iter().find(|package| package.contender == contender);
        let home = self.0.join(package.map_or("", |package| package.name));
        let work = files.work.display().to_string();
        let settings = files.work.join(format!("{}.conf", contender.name()));
        let at = settings.display().to_string();
        let (text, args) = match contender {
            Contender::Nginx => (nginx(root, &work), vec!["-c".into(), at, "-p".into(), work.clone()]),
            Contender::Lighttpd => {
                let modules = home.join("usr/lib/lighttpd").display().to_string();
                (lighttpd(root, &work), vec!["-D".into(), "-f".into(), at, "-m".into(), modules])
            }
            Contender::Vsftpd => (vsftpd(root, &work), vec![at]),
            Contender::PureFtpd => {
                let passwords = pure_passwords(&home, root, files)?;
                let listen = format!("{SERVER},21");
                let pid = format!("{work}/pure-ftpd.pid");
                let args = ["-4", "-H", "-u", "1", "-E", "-S", &listen, "-l", &passwords, "-g", &pid];
                (String::new(), args.map(str::to_owned).to_vec())
            }
            _ => bail!("{} is no package", contender.name()),
        };
        fs::write(&settings, text)?;
        Ok(Launch { program, args, libraries: library_folders(&home) })
    }

    /// The version of a contender, as its program tells it.
    pub fn version(&self, contender: Contender) -> Option<String> {
        let program = self.program(contender);
        let libraries = library_folders(program.ancestors().nth(3)?);
        let flag = if contender == Contender::PureFtpd { "--help" } else { "-v" };
        let line = format!("LD_LIBRARY_PATH={libraries} {} {flag} 0>&1 2>&1 | head -1", program.display());
        let text = run(Command::new("sh").args(["-c", &line])).ok()?;
        let text = text.trim().trim_start_matches("nginx version: ");
        Some(text.split(" (").next().unwrap_or(text).to_owned())
    }
}

/// Builds the peer on gVisor's stack; Go itself is not installed by us, Debian's is too old for it.
fn gvisor(built: &Path) -> Result<()> {
    let program = built.join("gvisor-peer");
    let source = Path::new("benches/bench/gvisor");
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let kept = changed(&program).is_some_and(|made| {
        ["main.go", "go.mod"].iter().all(|file| changed(&source.join(file)).is_some_and(|at| at < made))
    });
    if kept {
        return Ok(());
    }
    if Command::new("go").arg("version").output().is_err() {
        bail!("it needs Go 1.23 or newer (go.dev/dl) in the path");
    }
    eprintln!("  building gVisor's stack");
    let mut go = Command::new("go");
    run(go.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(source))?;
    Ok(())
}

/// How a server is started.
#[derive(Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// For `LD_LIBRARY_PATH`.
    pub libraries: String,
}

/// Folders below `root` that have libraries of a package.
fn library_folders(root: &Path) -> String {
    let kinds = ["lib", "usr/lib"].map(|folder| root.join(folder));
    let inner = kinds.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let inner: Vec<String> = inner.map(|entry| entry.path().display().to_string()).collect();
    inner.join(":")
}

/// Libraries that a program lacks.
fn missing(root: &Path, program: &Path) -> Result<Vec<String>> {
    let text = run(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", library_folders(root)))?;
    let lines = text.lines().filter(|line| line.contains("not found"));
    Ok(lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

/// Its log is written as ours is: one line a request, several at a time, each after 20 ms at most. Its own defaults are a system call for each
/// line, and a second line, of an error, for what is not found. (lighttpd writes several at a time by itself, and no such line.)
fn nginx(root: &Path, work: &str) -> String {
    format!(
        "daemon off; user nobody nogroup; worker_processes 1; pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 4096; }}
http {{
  access_log {work}/nginx.log combined buffer=64k flush=20ms; log_not_found off; sendfile on; tcp_nopush on; tcp_nodelay on;
  keepalive_timeout 75; keepalive_requests 1000000000; default_type application/octet-stream;
  client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
  uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
  server {{ listen {SERVER}:80 backlog=4096; root {}; }}
}}
",
        root.display()
    )
}

fn lighttpd(root: &Path, work: &str) -> String {
    format!(
        "server.document-root = \"{}\"
server.bind = \"{SERVER}\"
server.port = 80
server.username = \"nobody\"
server.groupname = \"nogroup\"
server.modules = (\"mod_accesslog\")
accesslog.filename = \"{work}/lighttpd.log\"
server.errorlog = \"{work}/lighttpd.err\"
server.max-fds = 8192
server.max-connections = 4096
server.listen-backlog = 4096
server.max-keep-alive-requests = 1000000000
server.network-backend = \"sendfile\"
server.upload-dirs = (\"{work}\")
",
        root.display()
    )
}

/// The anonymous user must have a home that exists, which nobody has not.
fn vsftpd(root: &Path, work: &str) -> String {
    format!(
        "listen=YES\nlisten_ipv6=NO\nlisten_address={SERVER}\nbackground=NO\nanonymous_enable=YES\n\
         local_enable=NO\nwrite_enable=YES\nanon_upload_enable=YES\nanon_umask=022\nanon_root={}\n\
         ftp_username=daemon\nallow_writeable_chroot=YES\nsecure_chroot_dir={work}/empty\n\
         use_sendfile=YES\nxferlog_enable=YES\nxferlog_file={work}/vsftpd.log\nvsftpd_log_file={work}/vsftpd2.log\n\
         seccomp_sandbox=NO\nconnect_from_port_20=NO\ntcp_wrappers=NO\n",
        root.display()
    )
}

/// A database of passwords with the users `bench`, who stores, and `reader`; returns its place as pure-ftpd takes it.
fn pure_passwords(home: &Path, root: &Path, files: &Files) -> Result<String> {
    let (list, database) = (files.work.join("pure.passwd"), files.work.join("pure.pdb"));
    // pure-pw would choose a hash that takes seconds to verify: with each login, that would be measured.
    let line = |(name, hash)| format!("{name}:{hash}:65534:65534::{}/./::::::::::::\n", root.display());
    fs::write(&list, [("bench", HASH), ("reader", QUICK_HASH)].map(line).concat())?;
    let mut tool = Command::new(home.join("usr/bin/pure-pw"));
    tool.arg("mkdb").arg(&database).arg("-f").arg(&list).env("LD_LIBRARY_PATH", library_folders(home));
    run(&mut tool)?;
    Ok(format!("puredb:{}", database.display()))
}
