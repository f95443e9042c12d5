#!/bin/sh
# SPDX-License-Identifier: MIT
# run_target.sh TARGET CORPUS OPTION...: a fuzz target over all of its corpus, and then on, by the
# options. What it finds is thrown away, but for an input that fails: its name is told.
set -eu

target=$1
corpus=$2
shift 2
ls "$corpus"/* >/dev/null # an empty corpus is a failure
finds=$(mktemp -d)
trap 'rm -rf "$finds"' EXIT
# If the fuzzer finds a fault, the test fails. libFuzzer's status for this is 77, which meson would
# take for a skipped test.
"$target" -timeout=60 -print_final_stats=1 -error_exitcode=1 -artifact_prefix="$target-" "$@" \
	"$finds" "$corpus"
