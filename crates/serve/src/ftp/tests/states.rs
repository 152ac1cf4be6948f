//! Which command is answered how, in which state.

use super::super::command::VERBS;
use super::*;
use alloc::collections::BTreeSet;

/// A command, and the code of its reply before USER, after USER, for an anonymous user, and for one who may write.
type Row = (&'static str, [&'static str; 4]);

/// Every command with an argument that it takes, no data connection being agreed on.
const TABLE: &[Row] = &[
    ("ABOR", ["530", "530", "226", "226"]),
    ("ACCT x", ["202", "202", "202", "202"]),
    ("ADAT x", ["502", "502", "502", "502"]),
    ("ALLO 100", ["530", "530", "202", "202"]),
    ("APPE new", ["530", "530", "425", "425"]),
    ("AUTH TLS", ["502", "502", "502", "502"]),
    ("CCC", ["502", "502", "502", "502"]),
    ("CDUP", ["530", "530", "250", "250"]),
    ("CLNT curl", ["200", "200", "200", "200"]),
    ("CONF x", ["502", "502", "502", "502"]),
    ("CWD sub", ["530", "530", "250", "250"]),
    ("DELE a.txt", ["530", "530", "550", "250"]),
    ("ENC x", ["502", "502", "502", "502"]),
    ("EPRT |1|10.0.0.9|5001|", ["530", "530", "200", "200"]),
    ("EPSV", ["530", "530", "229", "229"]),
    ("FEAT", ["211", "211", "211", "211"]),
    ("HASH a.txt", ["530", "530", "213", "213"]),
    ("HELP", ["214", "214", "214", "214"]),
    ("HOST ftp.example.com", ["220", "503", "503", "503"]),
    ("LANG en", ["200", "200", "200", "200"]),
    ("LIST", ["530", "530", "425", "425"]),
    ("MDTM a.txt", ["530", "530", "213", "213"]),
    ("MFMT 20200102030405 a.txt", ["530", "530", "550", "213"]),
    ("MIC x", ["502", "502", "502", "502"]),
    ("MKD new", ["530", "530", "550", "257"]),
    ("MLSD", ["530", "530", "425", "425"]),
    ("MLST", ["530", "530", "250", "250"]),
    ("MODE S", ["530", "530", "200", "200"]),
    ("NLST", ["530", "530", "425", "425"]),
    ("NOOP", ["200", "200", "200", "200"]),
    ("OPTS UTF8 ON", ["200", "200", "200", "200"]),
    // "secret" is right for anna only; the wrong one is answered later.
    ("PASS secret", ["503", "230", "503", "503"]),
    ("PASV", ["530", "530", "227", "227"]),
    ("PBSZ 0", ["502", "502", "502", "502"]),
    ("PORT 10,0,0,9,19,137", ["530", "530", "200", "200"]),
    ("PROT P", ["502", "502", "502", "502"]),
    ("PWD", ["530", "530", "257", "257"]),
    ("QUIT", ["221", "221", "221", "221"]),
    ("REIN", ["220", "220", "220", "220"]),
    ("REST 5", ["530", "530", "350", "350"]),
    ("RETR a.txt", ["530", "530", "425", "425"]),
    ("RMD sub", ["530", "530", "550", "550"]),
    ("RNFR a.txt", ["530", "530", "550", "350"]),
    ("RNTO b.txt", ["530", "530", "503", "503"]),
    ("SITE CHMOD 600 a.txt", ["530", "530", "550", "200"]),
    ("SIZE a.txt", ["530", "530", "213", "213"]),
    ("SMNT x", ["530", "530", "502", "502"]),
    ("STAT", ["530", "530", "211", "211"]),
    ("STOR new", ["530", "530", "425", "425"]),
    ("STOU", ["530", "530", "425", "425"]),
    ("STRU F", ["530", "530", "200", "200"]),
    ("SYST", ["215", "215", "215", "215"]),
    ("TYPE I", ["530", "530", "200", "200"]),
    ("USER anna", ["331", "331", "331", "331"]),
    ("XCUP", ["530", "530", "250", "250"]),
    ("XCWD sub", ["530", "530", "250", "250"]),
    ("XMKD new", ["530", "530", "550", "257"]),
    ("XPWD", ["530", "530", "257", "257"]),
    ("XRMD sub", ["530", "530", "550", "550"]),
];

fn verb(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

#[test]
fn every_command_has_its_reply_in_every_state() {
    let named = || {
        let mut ftp = Ftp::new();
        ftp.expect("USER anna", "331");
        ftp
    };
    for (line, expected) in TABLE {
        Ftp::new().expect(line, expected[0]);
        named().expect(line, expected[1]);
        Ftp::anonymous().expect(line, expected[2]);
        Ftp::anna().expect(line, expected[3]);
    }
    let listed: BTreeSet<&str> = TABLE.iter().map(|row| verb(row.0)).collect();
    let known: BTreeSet<&str> = VERBS.iter().map(|spec| spec.name).collect();
    assert_eq!(listed, known);
}

#[test]
fn during_a_transfer_commands_wait_for_its_end() {
    for (line, expected) in TABLE {
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.world.net.client_stall(data, true);
        ftp.expect("RETR b.bin", "150");
        match verb(line) {
            "ABOR" => {
                ftp.expect(line, "426 226");
                ftp.expect("NOOP", "200");
                continue;
            }
            "STAT" => {
                let status = ftp.expect(line, "211");
                assert!(status.contains("RETR /b.bin: 0 bytes so far"), "{status}");
                ftp.send("NOOP");
            }
            _ => {
                ftp.expect(line, "");
                ftp.send("NOOP");
            }
        }
        ftp.world.net.client_stall(data, false);
        let expected = match verb(line) {
            "STAT" => String::from("226 200"),
            "QUIT" => String::from("226 221"),
            _ => format!("226 {} 200", expected[3]),
        };
        ftp.expect_replies(&expected);
    }
}

/// Arguments, right and wrong, for one who may write.
const ARGUMENTS: &[(&str, &str)] = &[
    ("", "500"),
    ("XYZZY", "500"),
    ("NOOP with something", "200"),
    ("PWD x", "501"),
    ("PASV x", "501"),
    ("PASV ", "227"),
    ("CWD", "501"),
    ("RETR", "501"),
    ("USER", "501"),
    ("TYPE", "501"),
    ("TYPE A N", "200"),
    ("TYPE a", "200"),
    ("TYPE L 8", "200"),
    ("TYPE i", "200"),
    ("TYPE A T", "504"),
    ("TYPE E", "504"),
    ("TYPE L 7", "504"),
    ("TYPE I N", "501"),
    ("TYPE Q", "501"),
    ("MODE Z", "504"),
    ("MODE B", "504"),
    ("MODE X", "501"),
    ("STRU R", "504"),
    ("STRU X", "501"),
    ("REST -1", "501"),
    ("REST +1", "501"),
    ("REST 9223372036854775807", "350"),
    ("REST 9223372036854775808", "501"),
    ("REST 99999999999999999999999", "501"),
    ("OPTS UTF8 OFF", "501"),
    ("OPTS UTF-8 NLST", "200"),
    ("OPTS MLST size;type;", "200"),
    ("OPTS HASH CRC32", "200"),
    ("OPTS HASH", "200"),
    ("OPTS HASH MD5", "501"),
    ("OPTS RETR x", "501"),
    ("LANG fr", "504"),
    ("LANG", "200"),
    ("LANG en-GB", "200"),
    ("HELP RETR", "214"),
    ("HELP xyz", "502"),
    ("EPSV 1", "229"),
    ("EPSV 2", "522"),
    ("EPSV 3", "522"),
    ("EPSV x", "501"),
    ("PORT 1,2,3", "501"),
    ("EPRT |3|x|1|", "522"),
    ("EPRT |2|::1|5000|", "522"),
    ("EPRT x", "501"),
    ("SITE HELP", "214"),
    ("SITE EXEC ls", "504"),
    ("SITE CHMOD 999 a.txt", "501"),
    ("SITE CHMOD 600", "501"),
    ("MFMT 2020 a.txt", "501"),
    ("MFMT 20200102030405", "501"),
    ("MFMT 20200102030405 nothere", "550"),
    ("SIZE nothere", "550"),
    ("SIZE sub", "550"),
    ("MDTM nothere", "550"),
    ("MLST nothere", "550"),
    ("CWD nothere", "550"),
    ("CWD a.txt", "550"),
    ("CWD ..", "550"),
    ("CDUP", "250"),
    ("DELE sub", "550"),
    ("DELE nothere", "550"),
    ("DELE /", "550"),
    ("RMD /", "550"),
    ("RMD a.txt", "550"),
    ("MKD sub", "550"),
    ("MKD a/b/c", "550"),
    ("RNFR nothere", "550"),
    ("HASH sub", "550"),
    ("HASH memory/1M", "550"),
    ("RETR a\u{1}b", "425"),
    ("CWD a\tb", "501"),
    ("USER a\tb", "501"),
];

#[test]
fn arguments_are_checked() {
    for (line, expected) in ARGUMENTS {
        Ftp::anna().expect(line, expected);
    }
    let mut ftp = Ftp::anna();
    ftp.world.client_send(ftp.control, b"CWD \xff\xff\r\nCWD \xc3\x28\r\n");
    ftp.expect_replies("501 501");
}

#[test]
fn a_rename_must_follow_at_once() {
    let mut ftp = Ftp::anna();
    ftp.expect("RNFR a.txt", "350");
    ftp.expect("NOOP", "200");
    ftp.expect("RNTO c.txt", "503");
    ftp.expect("RNFR a.txt", "350");
    ftp.expect("RNTO sub/c.txt", "250");
    assert_eq!(ftp.content("/sub/c.txt"), b"one\ntwo\n");
    ftp.expect("RNTO d.txt", "503");
    ftp.expect("RNFR sub/c.txt", "350");
    ftp.expect("RNTO nothere/c.txt", "553");
    // Which is no matter of rights.
    ftp.expect("MKD here", "257");
    ftp.expect("RNFR here", "350");
    assert!(ftp.expect("RNTO here/below", "553").contains("into itself"));
}

#[test]
fn commands_come_in_any_segments() {
    let mut ftp = Ftp::new();
    let script = b"USER anonymous\r\nPASS x\r\nSYST\r\npwd\nTYPE I\r\nSIZE b.bin\r\nNOOP\r\n";
    let expected = "331 230 215 257 200 213 200";
    ftp.world.client_send(ftp.control, script);
    ftp.expect_replies(expected);
    let mut ftp = Ftp::new();
    let mut all = String::new();
    for byte in script {
        ftp.world.client_send(ftp.control, &[*byte]);
        all.push_str(&ftp.replies());
    }
    assert_eq!(codes(&all), expected);
}

#[test]
fn transfers_can_be_pipelined() {
    let mut ftp = Ftp::anna();
    let port = ftp.epsv();
    ftp.world.client_send(ftp.control, b"RETR a.txt\r\nEPSV\r\nQUIT\r\n");
    ftp.expect_replies("150");
    let data = ftp.world.connect(at_port(PEER, 5001), port);
    ftp.expect_replies("226 229 221");
    assert_eq!(ftp.world.received(data), b"one\ntwo\n");
    ftp.assert_released();
}

#[test]
fn a_client_that_only_half_closes_gets_everything_that_it_asked_for() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.send("RETR a.txt");
    ftp.send("NOOP");
    ftp.world.net.client_finish(ftp.control);
    ftp.expect_replies("150 226 200");
    assert_eq!(ftp.world.received(data), b"one\ntwo\n");
    ftp.assert_released();
}

#[test]
fn rein_begins_anew() {
    let mut ftp = Ftp::anna();
    ftp.expect("CWD sub", "250");
    ftp.expect("EPSV ALL", "200");
    ftp.expect("REST 3", "350");
    ftp.expect("REIN", "220");
    ftp.expect("PWD", "530");
    ftp.log_in_anna();
    assert!(ftp.cmd("PWD").contains("\"/\""));
    ftp.expect("PASV", "227");
    assert_eq!(ftp.fetch("RETR a.txt"), b"one\ntwo\n");
}

#[test]
fn features_and_help_are_complete() {
    let mut ftp = Ftp::new();
    let features = ftp.cmd("FEAT");
    for feature in ["UTF8", "MDTM", "SIZE", "REST STREAM", "TVFS", "EPSV", "EPRT", "MFMT", "CLNT", "HOST"] {
        assert!(features.contains(&format!("\r\n {feature}\r\n")), "{feature}: {features}");
    }
    assert!(features.contains(" MLST Type*;Size*;Modify*;Perm*;Unique*;UNIX.mode*;\r\n"), "{features}");
    assert!(!features.contains("AUTH"), "no TLS is promised");
    let help = ftp.cmd("HELP");
    assert!(VERBS.iter().all(|spec| help.contains(spec.name)), "{help}");
}
