"""Uploads over FTP that do not fit, or replace what HTTP clients read: HOST FTP-PORT HTTP-URL.

Prints how many bytes of the upload that did not fit are there. Any surprise is an exception and a non-zero exit.
"""

import ftplib
import io
import sys
import threading
import time
import urllib.request

host, port, http = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def login():
    ftp = ftplib.FTP()
    ftp.connect(host, port, timeout=20)
    ftp.login("eric", "secret")
    return ftp


ftp = login()
try:
    ftp.storbinary("STOR small/up", io.BytesIO(b"x" * (8 << 20)))
    raise SystemExit("8 MiB fit into 1 MiB")
except ftplib.error_temp as error:
    reply = str(error)
assert reply.startswith("452 ") and "bytes are kept" in reply, reply
stored = ftp.size("small/up")
assert 0 < stored <= 1 << 20 and f" {stored} bytes" in reply, (stored, reply)
kept = io.BytesIO()
ftp.retrbinary("RETR small/up", kept.write)
assert kept.getvalue() == b"x" * stored, stored

# A file that is removed gives its room back, although HTTP has sent it.
ftp.delete("small/up")
for name in ("small/a", "small/b"):
    for turn in range(20):
        try:
            ftp.storbinary(f"STOR {name}", io.BytesIO(b"y" * (600 << 10)))
            break
        except ftplib.error_temp:
            # The one before is closed a moment after the answer at the latest.
            ftp.delete(name)
            time.sleep(0.05)
    else:
        raise SystemExit(f"{name}: no room")
    with urllib.request.urlopen(f"{http}/{name}", timeout=20) as response:
        assert len(response.read()) == 600 << 10
    ftp.delete(name)

# Two versions in turns; a reader gets all of one of them, and what was replaced is never seen again.
LEN = 3 << 20
ftp.storbinary("STOR file", io.BytesIO(b"0" * LEN))
done = threading.Event()
wrong = []


def read():
    while not done.is_set():
        with urllib.request.urlopen(f"{http}/file", timeout=20) as response:
            body = response.read()
        if len(body) != int(response.headers["Content-Length"]) or len(set(body)) != 1:
            wrong.append((len(body), set(body)))


readers = [threading.Thread(target=read) for _ in range(3)]
for reader in readers:
    reader.start()
for turn in range(1, 10):
    digit = str(turn).encode()
    ftp.storbinary("STOR file", io.BytesIO(digit * (LEN + turn)))
    with urllib.request.urlopen(f"{http}/file", timeout=20) as response:
        body = response.read()
        assert body == digit * (LEN + turn), (turn, len(body), body[:1])
done.set()
for reader in readers:
    reader.join()
assert not wrong, wrong

# One upload to a name at a time.
data, _ = ftp.ntransfercmd("STOR busy")
data.sendall(b"first")
second = login()
try:
    second.storbinary("STOR busy", io.BytesIO(b"second"))
    raise SystemExit("two uploads to one name")
except ftplib.error_temp as error:
    assert str(error).startswith("450 "), error
data.close()
ftp.voidresp()
assert ftp.size("busy") == 5
ftp.delete("file")
try:
    urllib.request.urlopen(f"{http}/file", timeout=20)
    raise SystemExit("deleted and still served")
except urllib.error.HTTPError as error:
    assert error.code == 404, error
ftp.quit()
print(stored)
