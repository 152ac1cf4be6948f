"""Drives the FTP server with Python's ftplib: HOST PORT. Any surprise is an exception and a non-zero exit."""

import ftplib
import hashlib
import io
import sys

host, port = sys.argv[1], int(sys.argv[2])

for passive in (True, False):
    ftp = ftplib.FTP()
    ftp.connect(host, port, timeout=20)
    ftp.login("eric", "secret")
    ftp.set_pasv(passive)

    content = io.BytesIO()
    ftp.retrbinary("RETR mib", content.write)
    assert len(content.getvalue()) == 1 << 20
    digest = hashlib.sha256(content.getvalue()).hexdigest()

    ftp.storbinary("STOR copy", io.BytesIO(content.getvalue()))
    again = io.BytesIO()
    ftp.retrbinary("RETR copy", again.write, rest=1000)
    assert again.getvalue() == content.getvalue()[1000:], "resume"
    ftp.storbinary("APPE copy", io.BytesIO(b"tail"))
    assert ftp.size("copy") == (1 << 20) + 4

    lines = ["first", "second", "third"]
    ftp.storlines("STOR lines.txt", io.BytesIO("\n".join(lines).encode() + b"\n"))
    got = []
    ftp.retrlines("RETR lines.txt", got.append)
    assert got == lines, got
    stored = io.BytesIO()
    ftp.retrbinary("RETR lines.txt", stored.write)
    assert stored.getvalue() == b"first\nsecond\nthird\n", stored.getvalue()

    assert ftp.mkd("/a b") == "/a b"
    ftp.cwd("/a b")
    assert ftp.pwd() == "/a b"
    ftp.storbinary('STOR quo"te', io.BytesIO(b""))
    assert ftp.nlst() == ['quo"te']
    facts = dict(ftp.mlsd(facts=["type", "size"]))
    assert facts['quo"te']["size"] == "0" and facts['quo"te']["type"] == "file", facts
    listing = []
    ftp.dir(listing.append)
    assert len(listing) == 1 and listing[0].startswith("-"), listing
    ftp.rename('quo"te', "../moved")
    ftp.cwd("..")
    ftp.delete("moved")
    ftp.rmd("a b")
    try:
        ftp.cwd("a b")
        raise SystemExit("a removed directory can be entered")
    except ftplib.error_perm as error:
        assert str(error).startswith("550"), error

    # Stop in the middle of an endless transfer; the session lives on.
    ftp.voidcmd("TYPE I")
    data = ftp.transfercmd("RETR memory/1T")
    data.recv(65536)
    data.close()
    reply = ftp.getmultiline()
    assert reply[:3] in ("226", "426", "451"), reply
    assert ftp.voidcmd("NOOP").startswith("200")
    ftp.quit()
    print("passive" if passive else "active", digest)
