#!/bin/sh
# Programs that some tests use, from Debian's packages, each only where its command is missing.
# Does nothing unless it is asked (`make system`, or CI=true) and runs as root on a machine with
# apt-get; silent when all is well. A package that cannot be had is no failure here: the tests that
# need it say so.

[ "${CI:-}" = true ] || [ "${1:-}" = asked ] || exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0

missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 ||
    missing="$missing postgresql"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v plink1.9 >/dev/null 2>&1 || missing="$missing plink1.9"
command -v plink2 >/dev/null 2>&1 || missing="$missing plink2"
command -v java >/dev/null 2>&1 || missing="$missing openjdk-17-jre-headless"
[ -n "$missing" ] || exit 0

export DEBIAN_FRONTEND=noninteractive
case "$missing" in *postgresql*)
    # The tests start a server of their own; the package need not start one.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    ;;
esac

log=$(mktemp)
apt-get update -qq >"$log" 2>&1
for package in $missing; do
    apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold \
        "$package" </dev/null >"$log" 2>&1 ||
        echo "tests: $package could not be installed: $(tail -n 1 "$log")" >&2
done
rm -f "$log"
exit 0
