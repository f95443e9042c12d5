# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the scripts beside it: sees to it that Debian packages are there. Tested by
# tests/tools/test_packages.py.

# Set by a script's --yes: install without asking.
packages_yes=no

# Prints those of its arguments that are not installed. Asks dpkg alone, so it costs nothing when
# all is there, and needs no network.
packages_missing() {
	local package
	for package in "$@"; do
		dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || echo "$package"
	done
}

# How to tell without dpkg that what a package brings is there, unless that is a program of its own
# name: another program, a library that pkg-config knows, a header, or a module of Python.
declare -A packages_signs=(
	[abigail-tools]=program:abidw
	[binutils]=program:readelf
	[check]=library:check
	[debhelper]=program:dh
	[dpkg-dev]=program:dpkg-buildpackage
	[gcc-aarch64-linux-gnu]=program:aarch64-linux-gnu-gcc
	[gnuplot-nox]=program:gnuplot
	[golang-go]=program:go
	[libboost-dev]=header:boost/version.hpp
	[libc6-dev]=header:stdio.h
	[libc6-dev-arm64-cross]=program:aarch64-linux-gnu-gcc
	[libev-dev]=header:ev.h
	[libevent-dev]=library:libevent
	[libglib2.0-dev]=library:glib-2.0
	[libhiredis-dev]=library:hiredis
	[libncurses-dev]=library:ncursesw
	[libseccomp-dev]=library:libseccomp
	[libsubunit-dev]=library:libsubunit
	[libsystemd-dev]=library:libsystemd
	[liburing-dev]=library:liburing
	[libuv1-dev]=library:libuv
	[musl-tools]=program:musl-gcc
	[ninja-build]=program:ninja
	[procps]=program:ps
	[python3-prometheus-client]=module:prometheus_client
	[python3-redis]=module:redis
	[python3-yaml]=module:yaml
	[qemu-user]=program:qemu-aarch64
	[redis-tools]=program:redis-cli
	[rpm]=program:rpmbuild
	[systemtap-sdt-dev]=header:sys/sdt.h
	[util-linux]=program:setarch
)

# packages_sign_there SIGN
packages_sign_there() {
	local name=${1#*:}
	case $1 in
	program:*) command -v "$name" >/dev/null ;;
	library:*) pkg-config --exists "$name" 2>/dev/null ;;
	header:*) echo "#include <$name>" | cc -E -o /dev/null - 2>/dev/null ;;
	module:*) python3 -c "import $name" 2>/dev/null ;;
	esac
}

# Where there is no dpkg nothing is installed: says what is not there, and ends the script.
packages_need_signs() {
	local package sign missing=()
	for package in "$@"; do
		sign=${packages_signs[$package]-program:$package}
		packages_sign_there "$sign" || missing+=("${sign/:/ } (in Debian: $package)")
	done
	if ((${#missing[@]} > 0)); then
		echo "There is no dpkg here, so you must install what is missing:"
		printf '  %s\n' "${missing[@]}"
		exit 1
	fi
}

# A mirror may be in trouble for a moment, and a new machine may be installing by itself.
packages_install() {
	local apt=(apt-get -q -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300) pause_s
	export DEBIAN_FRONTEND=noninteractive
	for pause_s in 10 30 0; do
		if "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; then
			return 0
		fi
		if ((pause_s > 0)); then
			echo "apt-get failed; trying again in $pause_s seconds"
			sleep "$pause_s"
		fi
	done
	return 1
}

# Asks a person; without one at the terminal the answer is yes, as with --yes.
packages_may_install() {
	local answer
	if [[ $packages_yes == yes || ! -t 0 || ! -t 1 ]]; then
		return 0
	fi
	read -r -p "Install them, and what they depend on? [y/N] " answer && [[ $answer == [yY]* ]]
}

# Installs what is missing, as root; else says what to run, and ends the script.
packages_need() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		packages_need_signs "$@"
		return
	fi
	mapfile -t missing < <(packages_missing "$@")
	if ((${#missing[@]} == 0)); then
		return
	fi
	if (($(id -u) != 0)); then
		echo "Packages are missing. Install them with:"
		echo "sudo apt-get install --no-install-recommends ${missing[*]}"
		exit 1
	fi
	echo "These packages are missing: ${missing[*]}"
	if ! packages_may_install; then
		echo "Nothing was installed."
		exit 1
	fi
	echo "Installing them: apt-get update, apt-get install --no-install-recommends"
	if ! packages_install "${missing[@]}"; then
		echo "Could not install: ${missing[*]}" >&2
		exit 1
	fi
}

# Prints the package with the runtime of clang's sanitizers. Its name has clang's version in it: the
# version of the clang that is here, or else of the clang that apt knows. Without either prints
# nothing.
packages_clang_runtime() {
	local version
	command -v dpkg-query >/dev/null || return 0
	version=$(clang -dumpversion 2>/dev/null) ||
		version=$(apt-cache depends clang 2>/dev/null |
			sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p')
	if [[ -n $version ]]; then
		echo "libclang-rt-${version%%.*}-dev"
	fi
}

# As packages_need, and needs clang with its sanitizers too. The apt of a new machine knows no
# packages before the first call has updated its lists. Then the second call installs the runtime.
packages_need_clang() {
	local runtime
	mapfile -t runtime < <(packages_clang_runtime)
	packages_need "$@" clang "${runtime[@]}"
	mapfile -t runtime < <(packages_clang_runtime)
	packages_need "${runtime[@]}"
}

# What it takes to build the library, from a bare machine on. gcc only recommends libc6-dev.
# shellcheck disable=SC2034 # for those who source this
packages_build=(gcc libc6-dev meson ninja-build pkg-config liburing-dev)

# The event loops of examples/loops.
# shellcheck disable=SC2034
packages_loops=(libuv1-dev libevent-dev libev-dev libglib2.0-dev libsystemd-dev libboost-dev g++
	python3)

# The relay's library, and the server that its tests start; no service comes with them.
# shellcheck disable=SC2034
packages_relay=(libhiredis-dev redis-tools python3-redis)

# A parser of what the tools tell Prometheus.
# shellcheck disable=SC2034
packages_metrics=(python3-prometheus-client)

# What the packaging suite builds with, and what looks at the ABI; rpm for the packages of Fedora.
# shellcheck disable=SC2034
packages_packaging=(binutils cmake abigail-tools musl-tools rpm)

# The compiler for aarch64, and what runs its programs.
# shellcheck disable=SC2034
packages_aarch64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user util-linux)

# What it takes beside that to make Debian packages. Every build dependency implies build-essential.
# shellcheck disable=SC2034
packages_deb=(build-essential debhelper dpkg-dev fakeroot libhiredis-dev libncurses-dev
	systemtap-sdt-dev)
