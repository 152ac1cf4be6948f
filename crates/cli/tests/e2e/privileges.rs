//! Whose rights a server has: not those of root when root starts it, and none that it needs when somebody else does.

use crate::data::Folder;
use crate::lab::{Lab, Namespace, Wire, text};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_linerate");

/// A line of `status` for each thread of the server.
fn of_threads(lab: &Lab, field: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", lab.pid())).expect("the server runs");
    let value = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.expect("a thread").path().join("status");
        let status = std::fs::read_to_string(path).expect("its status");
        let line = status.lines().find(|line| line.starts_with(field)).expect("the field");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.join(" ")
    };
    tasks.map(value).collect()
}

fn check_user(lab: &Lab, uid: u32, groups: &str) {
    let uid = format!("{uid} {uid} {uid} {uid}");
    for (field, wanted) in [
        ("Uid:", uid.as_str()),
        ("Groups:", groups),
        ("CapEff:", "0000000000000000"),
        ("CapPrm:", "0000000000000000"),
        ("NoNewPrivs:", "1"),
    ] {
        let values = of_threads(lab, field);
        assert!(values.iter().all(|value| value == wanted), "{field} {values:?}, not {wanted}");
    }
}

#[test]
fn root_becomes_nobody_who_can_still_serve() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Xdp(1), Wire::Kernel] {
        let served = Folder::with_files(1 << 20);
        let config = served.file("linerate.toml");
        std::fs::write(&config, "offload = \"all\"\n").expect("a file");
        let lab = Lab::start(wire, 1500, &[served.path(), "--config", config.to_str().expect("UTF-8")]);
        check_user(&lab, 65534, "65534");
        assert!(of_threads(&lab, "Uid:").len() > 1, "the workers, too");
        lab.client.must(&format!("curl -sSf -o /dev/null {}/mib", lab.http()));
        // Both ways of an FTP data connection, and settings that change while serving.
        lab.client.must(&format!("curl -sSf -o /dev/null {}/mib", lab.ftp()));
        lab.client.must(&format!("curl -sSf -P - -o /dev/null {}/mib", lab.ftp()));
        std::fs::write(&config, "offload = \"none\"\n").expect("a file");
        lab.signal("HUP");
        lab.client.must(&format!("sleep 0.3; curl -sSf -o /dev/null {}/mib", lab.http()));
        assert!(lab.log().contains("configuration reloaded"), "{}", lab.log());
        assert!(!lab.log().contains("WARN"), "{}", lab.log());
        lab.stop();
    }
}

#[test]
fn what_the_directory_has_stays_before_memory_files_where_its_path_is_closed() {
    let (above, other) = (Folder::new(), Folder::new());
    let open = |path: &str, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("as root");
    };
    let (served, config) = (above.file("served"), other.file("linerate.toml"));
    std::fs::create_dir_all(served.join("memory")).expect("a directory");
    std::fs::write(served.join("memory/12"), "of the place").expect("a file");
    std::fs::write(&config, "offload = \"all\"\n").expect("a file");
    open(above.path(), 0o755);
    open(other.path(), 0o755);
    let (served, config) = (served.to_str().expect("UTF-8"), config.to_str().expect("UTF-8"));
    let lab = Lab::start(Wire::Kernel, 1500, &[served, "--config", config]);
    check_user(&lab, 65534, "65534");
    let get = || lab.client.must(&format!("curl -sSf {}/memory/12", lab.http()));
    assert_eq!(get(), "of the place");
    open(above.path(), 0o700);
    lab.signal("HUP");
    lab.client.must("sleep 0.3");
    assert!(lab.log().contains("configuration reloaded"), "{}", lab.log());
    assert_eq!(get(), "of the place");
    lab.stop();
}

#[test]
fn uploads_that_are_allowed_too_late_are_explained() {
    let served = Folder::with_files(1);
    std::fs::set_permissions(served.path(), std::fs::Permissions::from_mode(0o755)).expect("as root");
    let config = served.file("linerate.toml");
    std::fs::write(&config, "ftp-user = [\"eric:ding\"]\n").expect("a file");
    let lab = Lab::start(Wire::Kernel, 1500, &[served.path(), "--config", config.to_str().expect("UTF-8")]);
    check_user(&lab, 65534, "65534");
    let upload = format!("echo hello | curl -sS -u eric:ding -T - {}/up 2>&1", lab.ftp());
    assert!(!lab.client.sh(&upload).status.success());
    assert!(!lab.log().contains("uploads will fail"), "nobody may upload yet: {}", lab.log());
    std::fs::write(&config, "ftp-user = [\"eric:ding\"]\nwritable = true\n").expect("a file");
    lab.signal("HUP");
    lab.client.must("sleep 0.3");
    assert!(!lab.client.sh(&upload).status.success(), "nobody has no right to");
    let log = lab.log();
    assert!(
        log.contains("uploads will fail: user nobody may not change") && log.contains(served.path()),
        "{log}"
    );
    lab.stop();
}

#[test]
fn where_nobody_can_write_root_is_not_kept_for_it() {
    let served = Folder::new();
    let client = Namespace::new();
    let dir = served.path();
    let output = client.sh(&format!(
        "timeout -s INT 3 unshare -m sh -c 'mount -t tmpfs -o ro none {dir} && \
         exec {BINARY} serve {dir} --device kernel --writable --ftp-user eric:secret'"
    ));
    let report = text(&output);
    assert!(report.contains("as user nobody") && report.contains("uploads will fail"), "{report}");
    assert!(!report.contains("rights of root"), "{report}");
}

#[test]
fn the_owner_serves_what_nobody_may_read() {
    let served = Folder::with_files(1);
    let path = Path::new(served.path());
    chown(path, Some(4321), Some(4321)).expect("as root");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("as root");
    let lab = Lab::start(Wire::Kernel, 1500, &[served.path()]);
    check_user(&lab, 4321, "4321");
    lab.client.must(&format!("curl -sSf {}/one", lab.http()));
    lab.stop();
    // Who is named must be able to.
    let args = ["serve", served.path(), "--device", "kernel", "--user", "nobody"];
    let output = Command::new(BINARY).args(args).output().expect("it starts");
    let all = text(&output);
    assert_eq!(output.status.code(), Some(2), "{all}");
    assert!(all.contains("nobody may not read") && all.contains(served.path()), "{all}");
    // Where only root can, root it is, and the log says so.
    chown(path, Some(0), Some(0)).expect("as root");
    let lab = Lab::start(Wire::Kernel, 1500, &[served.path()]);
    assert_eq!(of_threads(&lab, "Uid:")[0], "0 0 0 0");
    assert!(lab.log().contains("only root may read"), "{}", lab.log());
    lab.stop();
}

#[test]
fn a_user_s_uploads_are_his() {
    let served = Folder::new();
    chown(Path::new(served.path()), Some(4321), Some(4321)).expect("as root");
    let args = [served.path(), "--writable", "--ftp-user", "eric:ding", "--user", "4321:4321"];
    let lab = Lab::start(Wire::Tap, 1500, &args);
    lab.client.must(&format!("echo hello | curl -sSf -u eric:ding -T - {}/up", lab.ftp()));
    let meta = std::fs::metadata(served.file("up")).expect("the upload");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&meta), 4321);
    // As by chmod: who took all rights from himself can give them back.
    std::fs::create_dir(served.file("dir")).expect("a folder");
    chown(served.file("dir"), Some(4321), Some(4321)).expect("as root");
    let quotes = ["up", "dir"].map(|name| {
        format!("-Q 'SITE CHMOD 000 {name}' -Q 'MFMT 20200101000000 {name}' -Q 'SITE CHMOD 0750 {name}'")
    });
    lab.client.must(&format!("curl -sSf -u eric:ding -l {} {}/", quotes.join(" "), lab.ftp()));
    for name in ["up", "dir"] {
        let meta = std::fs::metadata(served.file(name)).expect("its metadata");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&meta) & 0o7777, 0o750, "{name}");
        assert_eq!(std::os::unix::fs::MetadataExt::mtime(&meta), 1_577_836_800, "{name}");
    }
    lab.stop();
}

#[test]
fn addresses_on_a_device_that_stays_are_taken_back() {
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    lab.client.must("ip tuntap add lrtap2 mode tap");
    // Nobody, but for the right to configure interfaces.
    let line = format!("exec timeout -s TERM 3 {BINARY} serve --device tap:lrtap2 2>&1");
    let mut server = lab.client.command("sh");
    let server = server.args(["-c", &line]).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    lab.client.must("sleep 1.5; curl -sSf --max-time 5 http://192.168.1.4/hello.txt; ip -o addr show lrtap2 | grep 192.168.1.1/24");
    let output = server.wait_with_output().expect("it ends");
    assert!(text(&output).contains("as user nobody"), "{}", text(&output));
    let addresses = lab.client.must("ip -o addr show lrtap2");
    assert!(!addresses.contains("192.168.1.1"), "{addresses}\n{}", text(&output));
    lab.stop();
}

#[test]
fn a_tap_made_ready_for_a_user_is_taken_as_it_is() {
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    lab.client.must("ip tuntap add lrtap1 mode tap user nobody; ip addr add 10.9.8.1/24 dev lrtap1; ip link set lrtap1 mtu 1400 up");
    // Everybody may open the TUN device where udev has set it up; elsewhere it is root's alone, so here it is one of our own.
    let tun = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200";
    let serve = |args: &str, meanwhile: &str| {
        let server = format!("su nobody -s /bin/sh -c \"exec timeout -s TERM 3 {BINARY} serve {args}\"");
        let line =
            format!("unshare -m sh -c '{tun} && exec {server}' 2>&1 & sleep 1.5; {meanwhile}; wait $!");
        text(&lab.client.sh(&line))
    };
    let report = serve("--device tap:lrtap1", "curl -sSf --max-time 5 http://10.9.8.4/hello.txt");
    assert!(report.contains("Hello from linerate.") && report.contains("MTU 1400"), "{report}");
    assert!(report.contains("curl http://10.9.8.4/"), "{report}");
    // What may not be changed is left, and said.
    let report = serve("--device tap:lrtap1 --address 10.7.7.4/24", "true");
    assert!(report.contains("ip addr add 10.7.7.1/24 dev lrtap1") && report.contains("Ready"), "{report}");
    lab.client.must("ip link set lrtap1 down");
    let report = serve("--device tap:lrtap1", "true");
    assert!(report.contains("ip link set lrtap1 up"), "{report}");
    lab.stop();
}

#[test]
fn mistakes_are_said_as_a_person_would() {
    let served = Folder::new();
    let closed = served.file("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o600)).expect("as root");
    chown(&closed, Some(65534), Some(65534)).expect("as root");
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    for (line, code, parts) in [
        (
            format!("su nobody -s /bin/sh -c '{BINARY} serve {}'", closed.display()),
            1,
            &["right to search"][..],
        ),
        (
            format!(
                "ip link add own0 type veth peer name own1; ip addr add 172.20.0.9/24 dev own0; ip link set own0 up; {BINARY} serve --address 172.20.0.50"
            ),
            2,
            &["172.20.0.50/24", "--address", "another interface", "packet:"],
        ),
        (format!("{BINARY} serve --address dhcp"), 2, &["dhcp", "--address", "TAP", "nobody"]),
        (
            format!("su nobody -s /bin/sh -c '{BINARY} serve --user daemon'"),
            2,
            &["--user daemon", "only root"],
        ),
        (format!("{BINARY} serve --user nosuchuser"), 2, &["nosuchuser", "/etc/passwd"]),
        (format!("{BINARY} serve --http-port 0 --ftp-port 0 --iperf3-port 0"), 2, &["nothing to serve"]),
    ] {
        let output = lab.client.sh(&line);
        let all = text(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {all}");
        for part in parts {
            assert!(all.contains(part), "{line}: {part:?} is not in {all}");
        }
        assert!(!all.contains("openat2"), "{all}");
    }
    lab.stop();
}

#[test]
fn a_hashed_password_logs_in() {
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    let hash = lab.client.must(&format!("echo 'ding dong' | {BINARY} hash-password"));
    lab.stop();
    let user = format!("eric:{}", hash.trim());
    let lab = Lab::start(Wire::Kernel, 1500, &["--ftp-user", &user]);
    lab.client.must(&format!("curl -sSf -u 'eric:ding dong' {}/", lab.ftp()));
    assert!(!lab.client.sh(&format!("curl -sSf -u eric:ding {}/", lab.ftp())).status.success());
    lab.stop();
    let empty = Command::new(BINARY).arg("hash-password").stdin(std::process::Stdio::null()).output();
    let empty = empty.expect("it starts");
    assert!(!empty.status.success() && text(&empty).contains("the password is empty"), "{}", text(&empty));
}
