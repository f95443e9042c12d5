# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The scripts of this folder source this file to install the Debian packages that they need.

# If packages_yes is yes, packages_need installs without asking. The option --yes of a script sets
# packages_yes.
packages_yes=no

# packages_missing PACKAGE...: prints the packages that are not installed. The function asks only
# dpkg. Therefore the function is fast and needs no network.
packages_missing() {
	local package
	for package in "$@"; do
		dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || echo "$package"
	done
}

# packages_install PACKAGE...: installs the packages, and tries at most three times. The first try
# may fail if a mirror fails for a moment, or if a new machine is still installing packages.
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

# Asks the user whether the script may install the missing packages. Returns 0 if the answer is yes.
# With --yes or without a terminal, returns 0 without asking.
packages_may_install() {
	local answer
	if [[ $packages_yes == yes || ! -t 0 || ! -t 1 ]]; then
		return 0
	fi
	read -r -p "Install them, and what they depend on? [y/N] " answer && [[ $answer == [yY]* ]]
}

# packages_need PACKAGE...: installs the missing packages if the user is root. If the user is not
# root, prints the command that installs the missing packages, and ends the script. Without dpkg it
# only prints what is needed, and what is missing shows when the script goes on.
packages_need() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		echo "There is no dpkg here. This needs what Debian has in the packages $*"
		return
	fi
	mapfile -t missing < <(packages_missing "$@" | sort -u)
	if ((${#missing[@]} == 0)); then
		return
	fi
	if (($(id -u) != 0)); then
		echo "Packages are missing. Install them with:"
		echo "sudo apt-get update"
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

# Prints the name of the package with the runtime of clang's sanitizers. The name contains the
# version of the installed clang, or of the clang that apt knows. If there is no clang, prints
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

# packages_need_clang PACKAGE...: calls packages_need for each PACKAGE, for clang, and for the
# runtime of clang's sanitizers. On a new machine apt knows no packages before the first call of
# packages_need has updated apt's lists. The second call of packages_need then installs the runtime.
packages_need_clang() {
	local runtime
	mapfile -t runtime < <(packages_clang_runtime)
	packages_need "$@" clang "${runtime[@]}"
	mapfile -t runtime < <(packages_clang_runtime)
	packages_need "${runtime[@]}"
}

# The packages that a bare machine needs to build the library. gcc does not require libc6-dev.
# shellcheck disable=SC2034 # for those who source this
packages_build=(gcc libc6-dev meson ninja-build pkg-config liburing-dev)

# The packages of the event loops in examples/loops.
# shellcheck disable=SC2034
packages_loops=(libuv1-dev libevent-dev libev-dev libglib2.0-dev libsystemd-dev libboost-dev g++
	python3)

# The package with SQLite, for the store.
# shellcheck disable=SC2034
packages_store=(libsqlite3-dev)

# The packages that the relay needs: its libraries for Redis and TLS, and the server and the program
# for certificates that the relay's tests start. The relay's packages start no service.
# shellcheck disable=SC2034
packages_relay=(libhiredis-dev libssl-dev openssl redis-tools python3-redis)

# The package with a parser of the OpenMetrics text that the tools print.
# shellcheck disable=SC2034
packages_metrics=(python3-prometheus-client)

# The packages of the suite `packaging`, which builds the library and compares ABIs.
# shellcheck disable=SC2034
packages_packaging=(binutils cmake abigail-tools musl-tools)

# The packages with the compiler for aarch64 and the emulator that runs programs for aarch64.
# shellcheck disable=SC2034
packages_aarch64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user util-linux)

# The packages that tools/build-deb needs in addition. Every build dependency implies
# build-essential.
# shellcheck disable=SC2034
packages_deb=(build-essential debhelper dpkg-dev fakeroot libdw-dev libhiredis-dev
	libncurses-dev libsqlite3-dev libssl-dev systemtap-sdt-dev)
