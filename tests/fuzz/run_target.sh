#!/bin/sh
# SPDX-License-Identifier: MIT
# run_target.sh TARGET CORPUS OPTION... runs a fuzz target on all inputs of its corpus, and then on
# new inputs, by the options. New inputs are thrown away. If an input fails, it is kept, and its
# file name is printed.
set -eu

target=$1
corpus=$2
shift 2
ls "$corpus"/* >/dev/null # an empty corpus is a failure
finds=$(mktemp -d)
trap 'rm -rf "$finds"' EXIT
# libFuzzer's usual status for a failure is 77. meson would take 77 for a skipped test.
"$target" -timeout=60 -print_final_stats=1 -error_exitcode=1 -artifact_prefix="$target-" "$@" \
	"$finds" "$corpus"
