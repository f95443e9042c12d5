# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The scripts of this folder source this file to install the Debian packages that they need.

# packages_missing PACKAGE...: prints the packages that are not installed.
packages_missing() {
	local package
	for package in "$@"; do
		dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || echo "$package"
	done
}

# packages_install PACKAGE...: installs the packages. It tries three times, since a mirror may fail
# for a moment, and a new machine may still be installing packages.
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

# packages_need PACKAGE...: installs the missing packages as root; at a terminal it asks first. For
# another user it prints the command that does, and ends the script. Without dpkg it only prints
# what is needed.
packages_need() {
	local missing answer=
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
	if [[ -t 0 && -t 1 ]]; then
		read -r -p "Install them, and what they depend on? [y/N] " answer || true
		[[ $answer == [yY]* ]] || { echo "Nothing was installed." && exit 1; }
	fi
	echo "Installing them: apt-get update, apt-get install --no-install-recommends"
	if ! packages_install "${missing[@]}"; then
		echo "Could not install: ${missing[*]}" >&2
		exit 1
	fi
}

# Lists of packages for the scripts.
# shellcheck disable=SC2034
{
	# what a bare machine needs to build the library; gcc does not require libc6-dev
	packages_build=(gcc libc6-dev meson ninja-build pkg-config liburing-dev)
	# for examples/loops
	packages_loops=(libuv1-dev libevent-dev libev-dev libglib2.0-dev libsystemd-dev
		libboost-dev g++ python3)
	packages_store=(libsqlite3-dev)
	# and what the relay's tests start; these packages start no service
	packages_relay=(libhiredis-dev libssl-dev openssl redis-tools python3-redis)
	# with its sanitizers and libFuzzer, and the linker for them
	packages_clang=(clang libclang-rt-dev lld)
	# a parser of the OpenMetrics text that the tools print
	packages_metrics=(python3-prometheus-client)
	# the suite `packaging`; without dpkg-dev, meson chooses lib64, where CMake does not look
	packages_packaging=(binutils cmake dpkg-dev abigail-tools musl-tools)
	packages_aarch64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user util-linux)
}
