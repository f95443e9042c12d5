# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The scripts of this folder source this file, and install_packages.sh with it. Each script defines
# a function named `usage`, which prints its help. Tested by tests/tools/test_help_and_version.py.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=install_packages.sh
. "$root/tools/install_packages.sh"

# script_answer ARGUMENT...: ends the script if --help, -h, --version or -V is among the arguments.
script_answer() {
	local word
	for word in "$@"; do
		case $word in
		--help | -h)
			usage
			exit 0
			;;
		--version | -V)
			sed -n "s/^  version: '\(.*\)',$/$(basename "$0") \1/p" "$root/meson.build"
			exit 0
			;;
		esac
	done
}

# script_misused: ends the script after a wrong argument.
script_misused() {
	usage >&2
	exit 2
}
