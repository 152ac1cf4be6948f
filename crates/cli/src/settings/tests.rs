//! Flags and files, right and wrong.

use super::*;
use crate::args::Cli;
use crate::args::Command;
use clap::Parser as _;
use linerate_transport::{Congestion, Ecn, Pacing};

fn load(args: &[&str]) -> Result<Settings, String> {
    let cli = Cli::try_parse_from(["linerate", "serve"].iter().chain(args)).map_err(|e| e.to_string())?;
    let Command::Serve(serve) = cli.command else { panic!("the arguments say serve") };
    Settings::load(&serve).map_err(|error| error.to_string())
}

fn check_error(args: &[&str], parts: &[&str]) {
    let error = load(args).expect_err("must be refused");
    for part in parts {
        assert!(error.contains(part), "{args:?}: {part:?} is not in {error:?}");
    }
}

#[test]
fn defaults_are_those_of_the_manual() {
    let settings = load(&[]).unwrap();
    assert_eq!(settings.addresses.iter().map(Cidr::to_string).collect::<Vec<_>>(), DEFAULT_ADDRESSES);
    assert_eq!((settings.memory, settings.iperf3_port, settings.writable), (64 << 20, 5201, false));
    assert!(settings.ftp_anonymous);
    assert_eq!((settings.fast_open, &settings.socket), (None, &SocketOptions::default()));
}

#[test]
fn a_bad_value_names_flag_value_and_what_is_allowed() {
    check_error(&["--device", "wire"], &["--device", "wire", "kernel"]);
    check_error(&["--mtu", "500"], &["--mtu", "500", "1280..=9216"]);
    check_error(&["--address", "1.2.3.4/99"], &["--address", "1.2.3.4/99", "prefix"]);
    check_error(&["--gateway", "10.9.9.9"], &["--gateway", "10.9.9.9", "192.168.1.4/24"]);
    check_error(&["--gateway", "192.168.1.4"], &["--gateway", "192.168.1.4'", "ours is 192.168.1.4/24"]);
    check_error(
        &["--address", "10.0.0.255/24"],
        &["--address", "10.0.0.255/24", "a unicast address of a host"],
    );
    check_error(&["--address", "10.0.0.255"], &["--address", "10.0.0.255/24", "can reach"]);
    check_error(&["--memory", "3MiB"], &["--memory", "'3MiB'", "4MiB"]);
    check_error(&["--stats", "90ms"], &["--stats", "'90ms'", "100ms"]);
    check_error(&["--busy-poll", "11ms"], &["--busy-poll", "'11ms'", "0s to 10ms"]);
    check_error(&["--offload", "warp"], &["--offload", "warp", "tso"]);
    check_error(&["--ftp-user", "eric"], &["--ftp-user", "NAME:PASSWORD"]);
    check_error(&["--ftp-user", "eric:a", "--ftp-user", "eric:b"], &["'eric' for '--ftp-user'", "twice"]);
    check_error(&["--http-port=0", "--ftp-port=0", "--iperf3-port=0"], &["iperf3-port", "nothing to serve"]);
    check_error(&["--device", "kernel", "--mtu", "1400"], &["--mtu", "1400", "--device tap"]);
    check_error(&["--device", "kernel", "--gateway", "10.0.0.1"], &["--gateway", "10.0.0.1", "--device tap"]);
    check_error(&["--address", "dhcp", "--gateway", "10.0.0.1"], &["--gateway", "10.0.0.1", "dhcp", "names"]);
    check_error(&["--device", "kernel", "--address", "dhcp"], &["--address", "kernel"]);
    check_error(&["--status", "8.8.8.8:9180"], &["--status", "8.8.8.8:9180", "--status-public"]);
    check_error(&["--status", "0.0.0.0:9180"], &["--status", "private"]);
    check_error(&["--vlan", "4095"], &["--vlan", "4095"]);
    check_error(&["--mac", "02:00"], &["--mac", "02:00:5e:10:00:01"]);
    check_error(&["--mac", "01:00:5e:00:00:01"], &["--mac", "one station"]);
    check_error(&["--mac", "00:00:00:00:00:00"], &["--mac", "one station"]);
    check_error(&["--device", "kernel", "--mac", "02:00:5e:10:00:01"], &["'--mac'", "packet:INTERFACE"]);
    check_error(&["--vlan", "7"], &["'--vlan'", "packet:INTERFACE"]);
    check_error(&["--device", "kernel", "--vlan", "7"], &["'--vlan'", "packet:INTERFACE"]);
    check_error(&["--status", "here"], &["--status", "here", "9180"]);
    check_error(&["--config", "/no/such.toml"], &["/no/such.toml"]);
}

#[test]
fn anonymous_users_are_kept_from_what_others_upload_unless_it_is_said() {
    for (args, expected) in [
        (&["--ftp-user", "eric:ding"][..], false),
        (&["--ftp-user", "eric:ding", "--ftp-anonymous", "true"], true),
        (&["--ftp-anonymous", "true"], true),
        (&["--ftp-port", "0", "--ftp-anonymous", "false"], false),
    ] {
        assert_eq!(load(args).unwrap().ftp_anonymous, expected, "{args:?}");
    }
    check_error(&["--ftp-anonymous", "false"], &["ftp-anonymous", "false", "--ftp-user"]);
    assert!(with_file("ftp-user = [\"a:b\"]\nftp-anonymous = true\n", &[]).unwrap().ftp_anonymous);
}

fn with_file(text: &str, args: &[&str]) -> Result<Settings, String> {
    let name = format!("linerate-settings-{}-{:x}.toml", std::process::id(), text.len() * 31 + args.len());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let path_text = path.to_str().unwrap().to_owned();
    let mut all = vec!["--config", &path_text];
    all.extend(args);
    let result = load(&all);
    std::fs::remove_file(&path).unwrap();
    result
}

#[test]
fn every_flag_is_a_key_and_flags_win() {
    let text = r#"
        device = "tap:lab0"
        address = ["10.1.0.4/16", "slaac"]
        gateway = ["10.1.0.1"]
        mtu = 9000
        http-port = 8000
        ftp-port = 2100
        iperf3-port = 0
        ftp-user = ["eric:ding"]
        writable = true
        user = "www-data"
        offload = "tso,gro"
        memory = "16MiB"
        stats = "1s"
        busy-poll = "50us"
        log-format = "json"
        status = 9180
        [tcp]
        send-buffer = "8KiB"
        receive-buffer = "8KiB"
        mss = 536
        no-delay = false
        delayed-ack-segments = 1
        delayed-ack-timeout = "10ms"
        congestion = "newreno"
        ecn = "request"
        pacing = "10MiB"
        fast-open = 64
        keep-alive = "0s"
        user-timeout = "5s"
    "#;
    let settings = with_file(text, &["--mtu", "1400", "--log-format", "text"]).unwrap();
    assert_eq!((settings.mtu, settings.log_format), (Some(1400), LogFormat::Text));
    assert_eq!(settings.busy_poll, Duration::from_micros(50));
    assert_eq!((settings.http_port, settings.ftp_port, settings.iperf3_port), (Some(8000), Some(2100), 0));
    assert_eq!(settings.device, Some(DeviceChoice::Tap("lab0".to_owned())));
    assert_eq!(settings.user.as_deref(), Some("www-data"));
    assert!(settings.slaac && settings.writable && settings.offload.tso4 && !settings.offload.rx_checksum);
    assert_eq!(settings.socket.send_buffer, BufferSize::Fixed(8192));
    assert_eq!(settings.socket.congestion, Congestion::NewReno);
    assert_eq!((settings.socket.ecn, settings.socket.pacing), (Ecn::Request, Pacing::Rate(10 << 20)));
    assert_eq!((settings.socket.mss, settings.socket.keep_alive), (Some(536), None));
    assert_eq!(settings.status.unwrap().to_string(), "127.0.0.1:9180");
    assert_eq!(load(&["--status", "0"]).unwrap().status, None);
    assert!(load(&["--status", "[::]:9180", "--status-public"]).unwrap().status.is_some());
    assert_eq!(settings.fast_open, Some(FastOpen { max_pending: 64 }));
    assert_eq!(with_file("[tcp]\nfast-open = 0\n", &[]).unwrap().fast_open, None);
}

#[test]
fn offloads_are_a_text_or_a_list() {
    for text in ["offload = \"tso, gro\"", "offload = [\"tso\", \"gro\"]"] {
        let offload = with_file(text, &[]).unwrap().offload;
        assert!(offload.tso4 && offload.rx_coalescing && !offload.gather, "{text}");
    }
    for (text, part) in
        [("[\"tso\", \"warp\"]", "warp"), ("[]", "tx-checksum"), ("7", "such as ["), ("[7]", "string")]
    {
        let error = with_file(&format!("mtu = 1500\noffload = {text}"), &[]).unwrap_err();
        assert!(error.contains("line 2") && error.contains(part), "{error}");
    }
}

#[test]
fn a_bad_file_is_answered_with_line_and_key() {
    let error = with_file("mtu = 1500\ncolour = 3\n", &[]).unwrap_err();
    assert!(error.contains("line 2") && error.contains("colour"), "{error}");
    let error = with_file("offload = \"warp\"\n", &[]).unwrap_err();
    assert!(error.contains("line 1") && error.contains("warp") && error.contains("tso"), "{error}");
    let error = with_file("[tcp]\nmss = 5\n", &[]).unwrap_err();
    for (key, value) in [("congestion", "bbr"), ("ecn", "on"), ("pacing", "fast")] {
        let error = with_file(&format!("[tcp]\n{key} = \"{value}\"\n"), &[]).unwrap_err();
        assert!(error.contains("line 2") && error.contains(value), "{error}");
    }
    assert!(error.contains("'tcp.mss'") && error.contains("88 to 9176"), "{error}");
    // It is no flag: the file is named instead.
    assert!(!error.contains("--") && error.contains(".toml"), "{error}");
    let error = with_file("memory = \"3MiB\"\n", &[]).unwrap_err();
    assert!(error.contains("'3MiB' for 'memory' in the configuration file"), "{error}");
    let error = with_file("status = \"8.8.8.8:80\"\n", &["--status", "8.8.8.8:90"]).unwrap_err();
    assert!(error.contains("'8.8.8.8:90' for '--status'"), "{error}");
    // The flag wins over the file, and so it is the flag that is wrong.
    let error = with_file("memory = \"8MiB\"\n", &["--memory", "2MiB"]).unwrap_err();
    assert!(error.contains("'2MiB' for '--memory'"), "{error}");
}

#[test]
fn what_has_no_effect_is_told() {
    let told = |args: &[&str], kernel| load(args).unwrap().ineffective(kernel).join("; ");
    assert_eq!(told(&[], true), "");
    assert!(told(&["/tmp", "--writable"], false).contains("ftp-user"));
    assert!(told(&["/tmp", "--writable", "--ftp-port", "0"], false).contains("FTP server is off"));
    assert_eq!(told(&["/tmp", "--writable", "--ftp-user", "a:b"], false), "");
    let text = told(&["--mtu", "1400", "--address", "10.0.0.4/24", "--offload", "none"], true);
    assert!(text.contains("mtu") && text.contains("address") && text.contains("offload"), "{text}");
    assert_eq!(told(&["--mtu", "1400", "--offload", "none"], false), "");
}

#[test]
fn a_directory_is_looked_at_once() {
    let error = load(&["/no/such/dir"]).unwrap().check_dir().unwrap_err().to_string();
    assert!(error.contains("DIR") && error.contains("/no/such/dir"), "{error}");
    assert!(load(&["/etc/passwd"]).unwrap().check_dir().unwrap_err().to_string().contains("this is a file"));
    assert_eq!(load(&["/tmp"]).unwrap().check_dir(), Ok(()));
}

#[test]
fn an_address_is_ours_once() {
    for device in ["kernel", "tap"] {
        let twice = ["--device", device, "--address", "::1", "--address", "10.0.0.4/24", "--address", "::1"];
        let error = load(&twice).unwrap_err().to_string();
        assert!(error.contains("address") && error.contains("::1") && error.contains("once"), "{error}");
    }
}

#[test]
fn what_the_directory_has_comes_before_memory_files() {
    let mut settings = load(&["/srv"]).unwrap();
    let told = settings.prefer_files().unwrap();
    assert!(told.contains("memory-files") && told.contains("/srv"), "{told}");
    // From now on it was chosen.
    assert_eq!(settings.prefer_files(), None);
    assert!(!settings.servers.drop_memory_files());
}

#[test]
fn passive_ftp_fits_a_router() {
    let settings =
        load(&["--ftp-passive-ports", "50000-50100", "--ftp-passive-address", "203.0.113.5"]).unwrap();
    assert_eq!(settings.ftp_passive_ports, Some(50_000..=50_100));
    assert_eq!(settings.ftp_passive_address, Some([203, 0, 113, 5].into()));
    let file = "ftp-passive-ports = \"2000-2009\"\nftp-passive-address = \"203.0.113.6\"\n";
    let settings = with_file(file, &["--ftp-passive-ports", "3000-3009"]).unwrap();
    assert_eq!(settings.ftp_passive_ports, Some(3_000..=3_009), "flags win");
    assert_eq!(settings.ftp_passive_address, Some([203, 0, 113, 6].into()));
    assert!(with_file("ftp-passive-ports = \"80-90\"\n", &[]).unwrap_err().to_string().contains("1024"));
}

/// A file with this text.
fn file(text: &str) -> (TempFile, String) {
    let path = std::env::temp_dir().join(format!(
        "linerate-settings-{}-{:p}.toml",
        std::process::id(),
        text.as_ptr()
    ));
    std::fs::write(&path, text).unwrap();
    let name = path.display().to_string();
    (TempFile(path), name)
}

struct TempFile(PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        // What stays behind does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_tables_of_the_servers_reach_their_settings() {
    let (_file, path) = file(
        "vlan = 7\ndevice = \"packet:eth7\"\n[http]\nautoindex = false\naccess-log = \"json\"\nrequest-line = \"2KiB\"\n\
         idle-timeout = \"5s\"\nindex-files = [\"a.html\", \"b\"]\nstatus-path = \"/s\"\n[ftp]\nlogin-tries = 7\n\
         banner = \"hello\"\n[iperf3]\ntests = 2\n",
    );
    let settings = load(&["--config", &path]).unwrap();
    assert_eq!(settings.vlan, Some(7));
    let mut http = linerate_serve::http::Config::default();
    settings.servers.http.apply(&mut http);
    let default = linerate_serve::http::Config::default();
    assert_eq!((http.autoindex, http.limits.request_line), (false, 2_048));
    assert_eq!(http.access_log, Some(linerate_serve::http::LogFormat::Json));
    assert_eq!((http.timeouts.idle, http.timeouts.head), (Duration::from_secs(5), default.timeouts.head));
    assert_eq!(http.index_files, ["a.html", "b"]);
    assert_eq!(http.status_path.as_deref(), Some("/s"));
    let mut ftp = linerate_serve::ftp::Config::default();
    settings.servers.ftp.apply(&mut ftp);
    assert_eq!((ftp.limits.login_tries, ftp.banner.as_str()), (7, "hello"));
    let mut iperf3 = linerate_serve::iperf3::Config::default();
    settings.servers.iperf3.apply(&mut iperf3);
    assert_eq!(iperf3.max_tests, 2);
}

#[test]
fn values_of_the_tables_that_do_not_fit_are_named() {
    for (text, parts) in [
        ("[http]\nrequest-line = \"10B\"", &["http.request-line", "10", "256", "1MiB"][..]),
        ("[http]\nidle-timeout = \"0s\"", &["http.idle-timeout", "0s", "100ms", "24h"]),
        ("[http]\nstatus-path = \"s\"", &["http.status-path", "'s'", "begins with /"]),
        ("[http]\nstatus-path = \"/\"", &["http.status-path", "'/'", "not the root"]),
        ("[http]\nstatus-path = \"/status/\"", &["http.status-path", "'/status/'", "without / at its end"]),
        ("[http]\nstatus-path = \"/a//b\"", &["http.status-path", "'/a//b'"]),
        ("[http]\nstatus-path = \"/./s\"", &["http.status-path", "'/./s'"]),
        ("[http]\nstatus-path = \"/a/../../s\"", &["http.status-path", "'/a/../../s'"]),
        ("[http]\nstatus-path = \"/memory/5\"", &["http.status-path", "'/memory/5'", "not a memory file's"]),
        ("[http]\nindex-files = [\"a/b\"]", &["http.index-files", "a/b", "names of files"]),
        ("[http]\naccess-log = \"loud\"", &["line 2", "loud", "combined"]),
        ("[ftp]\nlogin-tries = 0", &["ftp.login-tries", "'0'", "1 to 100"]),
        ("[ftp]\nlogin-tries = -1", &["line 2", "-1", "0 or more"]),
        ("[ftp]\nlogin-tries = 5000000000", &["ftp.login-tries", "'5000000000'", "1 to 100"]),
        ("[http]\nbody = \"2TiB\"", &["http.body", "'2TiB'", "0 to 1TiB"]),
        ("[tcp]\ndelayed-ack-segments = 0", &["tcp.delayed-ack-segments", "'0'", "1 to 255"]),
        ("ftp-user = [\"a:b\", \"c:d\", \"a:e\"]", &["'a' for 'ftp-user'", "twice"]),
        ("mtu = 500", &["'500' for 'mtu'", "1280 to 9216"]),
        ("[iperf3]\ntest = 1", &["line 2", "test", "tests-per-address"]),
    ] {
        let (_file, path) = file(text);
        check_error(&["--config", &path], parts);
    }
}

#[test]
fn values_of_another_type_are_answered_with_what_is_allowed() {
    for (text, expected) in [
        ("http-port = 70000", "expected a port, 0 to 65535"),
        ("http-port = \"80\"", "expected a port, 0 to 65535"),
        ("mtu = \"1500\"", "expected 1280 to 9216 bytes"),
        ("http = 5", "expected a table"),
        ("tcp = 5", "expected a table"),
        ("address = \"10.0.0.1\"", "expected a list such as [\"192.168.1.4/24\"]"),
        ("address = [5]", "expected a text in quotes: ADDRESS/PREFIX"),
        ("gateway = \"x\"", "expected a list such as [\"192.168.1.1\"]"),
        ("ftp-user = \"a:b\"", "expected a list such as [\"NAME:PASSWORD\"]"),
        ("memory = 5", "expected a text in quotes: a size such as 64MiB"),
        ("stats = 1", "expected a text in quotes: a time such as 1s"),
        ("offload = true", "expected a text in quotes: all, none, or"),
        ("[tcp]\npacing = 100", "expected a text in quotes: off, auto or bytes per second"),
        ("[tcp]\necn = true", "expected a text in quotes: off, accept or request"),
        ("[tcp]\ndelayed-ack-segments = 256", "expected 1 to 255 segments"),
        ("[limits]\nconnections = \"9\"", "expected 64 to 1048576 connections"),
        ("[http]\nindex-files = \"a\"", "expected a list such as [\"index.html\"]"),
        ("[http]\nlistings = \"1\"", "expected a whole number"),
        ("[http]\naccess-log = 1", "expected a text in quotes: off, common, combined or json"),
        ("log-format = 1", "expected a text in quotes: text or json"),
        ("gateway = [\"x\"]", "expected a text in quotes: an IP address"),
        ("gateway = [1]", "expected a text in quotes: an IP address"),
        ("ftp-passive-address = \"x\"", "expected a text in quotes: an IPv4 address"),
        ("ftp-passive-ports = 5", "expected a text in quotes: FROM-TO"),
    ] {
        let (_file, path) = file(text);
        check_error(&["--config", &path], &["line ", expected]);
    }
}

#[test]
fn every_key_of_the_tables_is_in_the_manual() {
    let manual = include_str!("../../../../docs/settings.md");
    for names in [HttpOptions::NAMES, FtpOptions::NAMES, Iperf3Options::NAMES] {
        for name in names {
            let (_, key) = name.split_once('.').unwrap();
            assert!(manual.contains(&format!("| `{key}` |")), "{name}");
        }
    }
}
