# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The scripts of this folder source this file. It answers the options that all scripts have: --help
# and --version. Tested by tests/tools/test_help_and_version.py.

# Prints the version of the library.
script_version() {
	sed -n "s/^  version: '\(.*\)',$/\1/p" "$(dirname "${BASH_SOURCE[0]}")/../meson.build"
}

# script_answer ARGUMENT...: answers the first --help, -h, --version or -V among the arguments, and
# ends the script. If the arguments have none of these options, the function returns. Each script
# defines a function named `usage`, which prints the help.
script_answer() {
	local word
	for word in "$@"; do
		case $word in
		--help | -h)
			usage
			exit 0
			;;
		--version | -V)
			echo "$(basename "$0") $(script_version)"
			exit 0
			;;
		esac
	done
}
