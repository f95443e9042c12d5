# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the scripts beside it: sees to it that Debian packages are there.

# Prints those of its arguments that are not installed. Asks dpkg alone, so it costs nothing when
# all is there, and needs no network.
packages_missing() {
	local package
	for package in "$@"; do
		dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || echo "$package"
	done
}

# A mirror may be in trouble for a moment, and a new machine may be installing by itself.
packages_install() {
	local apt=(apt-get -q -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300) pause_s
	export DEBIAN_FRONTEND=noninteractive
	for pause_s in 10 30 0; do
		if "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; then
			return 0
		fi
		sleep "$pause_s"
	done
	return 1
}

# Installs what is missing, as root; else says what to run, and ends the script.
packages_need() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		echo "No dpkg here: going on in the hope that the like of these is installed:"
		echo "  $*"
		return
	fi
	mapfile -t missing < <(packages_missing "$@")
	if ((${#missing[@]} == 0)); then
		return
	fi
	if ((EUID != 0)); then
		echo "Packages are missing. Install them with:"
		echo "sudo apt-get install --no-install-recommends ${missing[*]}"
		exit 1
	fi
	echo "Installing: ${missing[*]}"
	if ! packages_install "${missing[@]}"; then
		echo "Could not install: ${missing[*]}" >&2
		exit 1
	fi
}

# What it takes to build the library, from a bare machine on. gcc only recommends libc6-dev.
# shellcheck disable=SC2034 # for those who source this
packages_build=(gcc libc6-dev meson ninja-build pkg-config liburing-dev)

# The event loops of examples/loops.
# shellcheck disable=SC2034
packages_loops=(libuv1-dev libevent-dev libev-dev libglib2.0-dev libsystemd-dev libboost-dev g++
	python3)

# What the packaging suite builds with, and what looks at the ABI.
# shellcheck disable=SC2034
packages_packaging=(binutils cmake abigail-tools musl-tools)

# The compiler for aarch64, and what runs its programs.
# shellcheck disable=SC2034
packages_aarch64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user util-linux)
