#!/bin/sh
# Fetches the source of Debian's package of lwIP, compares its SHA-256 with the one that Debian published, and builds the two
# programs of this folder with it: build.sh FOLDER. What is there and newer than its sources is kept.
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
version=2.1.3+dfsg1
sum=0a8276d09fc4e97bbba2f953d74af2388fc2195ea156be9d7589e297a68fde24

mkdir -p "$out"
cd "$out"
if [ -e lwip-peer ] && [ -z "$(find "$here" -newer lwip-peer -type f)" ]; then exit 0; fi
if ! [ -d "lwip-$version" ]; then
    curl -sSfL --retry 2 -m 60 -o lwip.tar.xz "http://deb.debian.org/debian/pool/main/l/lwip/lwip_$version.orig.tar.xz" || {
        echo "lwIP cannot be fetched" >&2
        exit 3
    }
    echo "$sum  lwip.tar.xz" | sha256sum -c --quiet -
    rm -rf lwip.part
    mkdir lwip.part
    tar -xf lwip.tar.xz -C lwip.part --strip-components=1
    mv lwip.part "lwip-$version"
    rm lwip.tar.xz
fi
source=lwip-$version/src
sources="$(ls $source/core/*.c $source/core/ipv4/*.c) $source/netif/ethernet.c"
build() {
    cc -O3 -flto -g -w "$@" -I "$here" -I "$source/include" $sources
}
build -DTWO_ENDS '-DBUFFER=(64<<10)' -o lwip-ends "$here/ends.c"
build '-DBUFFER=(1<<20)' -o lwip-peer "$here/peer.c"
