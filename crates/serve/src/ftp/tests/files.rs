//! Commands on paths, listings and their effects.

use super::*;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn directories_are_made_entered_and_removed() {
    let mut ftp = Ftp::anna();
    assert!(ftp.expect("MKD a \"b\"", "257").starts_with("257 \"/a \"\"b\"\"\""));
    ftp.expect("CWD a \"b\"", "250");
    assert!(ftp.expect("PWD", "257").starts_with("257 \"/a \"\"b\"\"\""));
    ftp.store("STOR file", b"x");
    ftp.expect("RMD /a \"b\"", "550");
    ftp.expect("DELE file", "250");
    ftp.expect("CDUP", "250");
    ftp.expect("RMD a \"b\"", "250");
    ftp.expect("CWD a \"b\"", "550");
    assert!(ftp.cmd("CWD /sub").contains("\"/sub\""));
    ftp.expect("CWD ./../sub/../sub//", "250");
    assert!(ftp.cmd("XPWD").contains("\"/sub\""));
}

#[test]
fn times_and_modes_are_told_and_set() {
    let mut ftp = Ftp::anna();
    assert_eq!(ftp.cmd("MDTM a.txt"), "213 20240229120000\r\n");
    assert_eq!(ftp.cmd("MFMT 20200102030405 a.txt"), "213 Modify=20200102030405; /a.txt\r\n");
    assert_eq!(ftp.cmd("MDTM a.txt"), "213 20200102030405\r\n");
    ftp.expect("SITE CHMOD 0600 a.txt", "200");
    ftp.expect("OPTS MLST Type;Size;UNIX.mode;", "200");
    assert_eq!(
        ftp.cmd("MLST a.txt"),
        "250-Facts:\r\n Type=file;Size=8;UNIX.mode=0600; /a.txt\r\n250 End\r\n"
    );
    assert_eq!(ftp.cmd("SIZE a.txt"), "213 8\r\n");
    ftp.expect("TYPE A", "200");
    ftp.expect("SIZE a.txt", "550");
}

#[test]
fn hashes_are_computed() {
    let mut ftp = Ftp::anna();
    let expected =
        "213 SHA-256 0-8 54baa7d1b91afa8a8c3a1d7e6b8d6c4d3cf3e1d3c1bc0a0b9c8f94f8b0e2a1f7 /a.txt\r\n";
    // The digest itself is checked where it is computed; here its form, and that it depends on the whole file.
    let first = ftp.expect("HASH a.txt", "213");
    assert_eq!(first.len(), expected.len());
    assert!(first.starts_with("213 SHA-256 0-8 ") && first.ends_with(" /a.txt\r\n"));
    ftp.expect("OPTS HASH CRC32", "200");
    ftp.world.files.add_file("/digits", b"123456789");
    assert_eq!(ftp.cmd("HASH digits"), "213 CRC32 0-9 cbf43926 /digits\r\n");
    let whole = ftp.cmd("HASH b.bin");
    ftp.world.files.nodes.get_mut("/b.bin").unwrap().data[199_999] ^= 1;
    assert_ne!(ftp.cmd("HASH b.bin"), whole);
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn listings_have_the_columns_that_clients_parse() {
    let mut ftp = Ftp::anna();
    ftp.world.files.add_file("/.hidden", b"");
    assert_eq!(
        text(ftp.fetch("LIST")),
        "-rw-r--r--   1 ftp      ftp                 8 Feb 29  2024 a.txt\r\n\
         -rw-r--r--   1 ftp      ftp            200000 Feb 29  2024 b.bin\r\n\
         -rw-r--r--   1 ftp      ftp                 0 Feb 29  2024 empty\r\n\
         drwxr-xr-x   1 ftp      ftp                 0 Feb 29  2024 sub\r\n"
    );
    assert!(text(ftp.fetch("LIST -la")).contains(".hidden"));
    assert_eq!(text(ftp.fetch("NLST")), "a.txt\r\nb.bin\r\nempty\r\nsub\r\n");
    assert_eq!(text(ftp.fetch("NLST -a *e*")), ".hidden\r\nempty\r\n");
    // It has no options to ask by.
    assert!(text(ftp.fetch("MLSD")).contains(" .hidden\r\n"));
    assert_eq!(text(ftp.fetch("NLST sub")), "sub/x y\r\n");
    assert_eq!(text(ftp.fetch("NLST sub/*")), "sub/x y\r\n");
    assert_eq!(text(ftp.fetch("NLST /sub/?*y")), "/sub/x y\r\n");
    assert_eq!(text(ftp.fetch("NLST sub/x y")), "sub/x y\r\n");
    assert_eq!(text(ftp.fetch("NLST *.nothing")), "");
    assert!(text(ftp.fetch("LIST -l sub")).ends_with(" x y\r\n"));
    assert!(text(ftp.fetch("LIST sub/x y")).ends_with(" x y\r\n"));
    assert_eq!(
        text(ftp.fetch("MLSD sub")),
        "Type=file;Size=2;Modify=20240229120000;Perm=adfrw;Unique=6;UNIX.mode=0644; x y\r\n"
    );
    for (line, code) in [("LIST nothere", "550"), ("NLST a.txt/*", "550"), ("MLSD a.txt", "501")] {
        ftp.passive();
        ftp.expect(line, code);
    }
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn facts_promise_what_the_file_system_allows() {
    let mut ftp = Ftp::anna();
    for (name, mode) in [("/a.txt", 0o444), ("/b.bin", 0o000), ("/sub", 0o555), ("/", 0o777)] {
        ftp.world.files.nodes.get_mut(name).unwrap().mode = mode;
    }
    ftp.expect("OPTS MLST Perm;", "200");
    assert_eq!(
        text(ftp.fetch("MLSD /")),
        "Perm=dfr; a.txt\r\nPerm=df; b.bin\r\nPerm=adfrw; empty\r\nPerm=defl; sub\r\n"
    );
    // Nothing in a directory that cannot be written can be removed or get another name.
    assert_eq!(text(ftp.fetch("MLSD sub")), "Perm=arw; x y\r\n");
    assert!(ftp.cmd("MLST sub/x y").contains("Perm=adfrw;"), "not known at once");
    ftp.world.files.stats_now = Some(0);
    assert!(ftp.cmd("MLST sub/x y").contains("Perm=arw;"));
    assert!(ftp.cmd("MLST a.txt").contains("Perm=dfr;"));
    assert!(ftp.cmd("MLST /").contains("Perm=celmp;"));
    assert!(ftp.cmd("MLST /memory/1M").contains("Perm=r;"));
}

#[test]
fn a_directory_that_cannot_be_searched_is_not_entered() {
    let mut ftp = Ftp::anna();
    ftp.world.files.nodes.get_mut("/sub").unwrap().mode = 0o644;
    ftp.expect("CWD sub", "550");
    assert!(ftp.cmd("PWD").contains("\"/\""));
    ftp.world.files.nodes.get_mut("/sub").unwrap().mode = 0o111;
    ftp.expect("CWD sub", "250");
}

#[test]
fn stat_lists_on_the_control_connection() {
    let mut ftp = Ftp::anna();
    let reply = ftp.expect("STAT sub", "213");
    assert_eq!(
        reply,
        "213-Status of /sub:\r\n-rw-r--r--   1 ftp      ftp                 2 Feb 29  2024 x y\r\n213 End\r\n"
    );
    ftp.expect("STAT a.txt", "213");
    ftp.expect("STAT nothere", "550");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn a_big_directory_is_listed_whole() {
    let mut ftp = Ftp::anna();
    ftp.world.files.add_dir("/many");
    for i in 0..5_000 {
        ftp.world.files.add_file(&format!("/many/{i:05}"), b"");
    }
    let names = text(ftp.fetch("NLST many"));
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5_000);
    let status = ftp.expect("STAT many", "213");
    assert_eq!(status.lines().count(), 5_002);
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn a_listing_over_the_control_connection_can_be_aborted() {
    let mut ftp = Ftp::anna();
    ftp.world.files.hold = true;
    ftp.expect("STAT sub", "");
    ftp.expect("NOOP", "");
    // Nothing is open yet: the command ends as any other.
    ftp.expect("ABOR", "426 226 200");
    ftp.world.files.hold = false;
    ftp.expect("NOOP", "200");
    assert_eq!(ftp.world.files.open_count(), 0, "what was opened late is closed");
}

#[test]
fn no_name_forges_a_reply_or_a_line() {
    let mut ftp = Ftp::anna();
    ftp.world.files.add_file("/bad\r\n226 forged", b"");
    assert!(!text(ftp.fetch("NLST")).contains("forged"));
    assert!(!ftp.cmd("STAT /").contains("forged"));
    assert_eq!(ftp.server.stats().unfit_names, 2);
    ftp.world.client_send(ftp.control, b"MKD a\rb\r\n");
    ftp.expect_replies("501");
    ftp.world.client_send(ftp.control, b"MKD a\0b\r\n");
    ftp.expect_replies("501");
}

#[test]
fn errors_of_the_disk_have_their_codes() {
    use linerate_transport::FileError::*;
    for (error, mkd, stor, retr) in [
        (NoSpace, "452", "452", "452"),
        (Io, "451", "451", "451"),
        (TooManyOpen, "450", "450", "450"),
        (Permission, "550", "553", "550"),
        (ReadOnly, "550", "553", "550"),
    ] {
        let mut ftp = Ftp::anna();
        ftp.passive();
        ftp.world.files.fail = Some(error);
        ftp.expect("MKD x", mkd);
        ftp.expect("STOR x", stor);
        ftp.expect("RETR a.txt", retr);
    }
}

#[test]
fn memory_files_are_there_without_a_disk() {
    let mut ftp = Ftp::anonymous();
    assert_eq!(ftp.cmd("SIZE memory/256M"), "213 268435456\r\n");
    ftp.expect("CWD memory", "250");
    let bytes = ftp.fetch("RETR 3M");
    assert_eq!(bytes.len(), 3 << 20);
    assert!(bytes.iter().enumerate().all(|(i, b)| *b == (i % 65_536 % 251) as u8));
    ftp.expect("REST 3145700", "350");
    assert_eq!(ftp.fetch("RETR 3M"), &bytes[3_145_700..]);
    assert_eq!(ftp.fetch("RETR null"), b"");
    assert_eq!(text(ftp.fetch("LIST")), "");
    assert!(text(ftp.fetch("LIST 1K")).contains(" 1024 Jan 02 03:04 1K\r\n"));
    ftp.store("STOR null", &bytes);
    assert_eq!(ftp.server.stats().bytes_received, 3 << 20);
    ftp.passive();
    ftp.expect("STOR 1M", "553");
    ftp.expect("RETR 2T", "550");

    // Nothing is stored, renamed or removed that could not be read.
    let mut ftp = Ftp::anna();
    ftp.expect("MKD memory", "550");
    ftp.passive();
    ftp.expect("STOR memory/7", "553");
    ftp.expect("DELE memory/1K", "550");
    ftp.expect("RNFR a.txt", "350");
    ftp.expect("RNTO memory/7", "553");

    let mut ftp = Ftp::with(Config { memory_files: false, ..config() });
    ftp.log_in_anna();
    ftp.expect("CWD memory", "550");
    ftp.expect("SIZE memory/1M", "550");
    ftp.passive();
    ftp.expect("STOR memory/null", "553");
}
