//! The server in a network namespace of its own, and Python's sockets as its clients. Needs root.

use std::process::Command;

/// Waits for the server, and sends a word, a megabyte, and many connections at once.
const CLIENT: &str = r#"
import socket, sys, threading, time
def ask(data, wait=5.0):
    s = socket.create_connection(("192.168.70.4", 7), wait)
    sent = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    sent.start()
    got = bytearray()
    while piece := s.recv(65536):
        got += piece
    sent.join()
    return bytes(got) == data
for attempt in range(100):
    try:
        if ask(b"hello\n"):
            break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("no echo")
large = bytes(i * 7 % 256 for i in range(1 << 20))
assert ask(large), "a megabyte"
assert ask(b""), "nothing"
results = []
threads = [threading.Thread(target=lambda: results.append(ask(large[:100000]))) for _ in range(20)]
[t.start() for t in threads]
[t.join() for t in threads]
assert results == [True] * 20, results
"#;

#[test]
fn what_is_sent_comes_back() {
    // The namespace, the server and its device end with the shell.
    let script = format!(
        "ip link set lo up; {} & server=$!; timeout 60 python3 -c \"$CLIENT\"; result=$?; kill $server; exit $result",
        env!("CARGO_BIN_EXE_echo")
    );
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .env("CLIENT", CLIENT)
        .output()
        .expect("unshare runs");
    assert!(output.status.success(), "{}\n{output:?}", String::from_utf8_lossy(&output.stderr));
}
