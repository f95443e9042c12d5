#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: test_abi.sh SOURCE-ROOT LIBRARY JOURNAL-LIBRARY
#
# Checks that the libraries have the ABI of lib/abi, and that tools/abi notices a change. The test
# changes a copy of the description, and runs tools/abi with the copy. The test also makes releases
# with changed descriptions, as tags of a git repository.
set -euo pipefail

root=$1
library=$2
journal=$3
description=lib/abi/timerhub.abi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"/{tools,lib/abi,include}
cp "$root/tools/abi" "$copy/tools/"
cp "$root/lib/abi/grow.suppr" "$copy/lib/abi/"
cp "$root"/include/*.h "$copy/include/"

"$root/tools/abi" "$library"
"$root/tools/abi" "$journal"

# The function falsified() has the arguments WANTED SED-COMMAND... It changes the description of the
# ABI by sed. It then compares the library with the changed description. WANTED is the expected
# answer of tools/abi, good or bad.
falsified() {
	local wanted=$1 got=good
	shift
	sed "$@" "$root/$description" >"$copy/$description"
	if cmp -s "$root/$description" "$copy/$description"; then
		echo "nothing was falsified by $*"
		exit 1
	fi
	"$copy/tools/abi" "$library" >"$copy/log" 2>&1 || got=bad
	if [[ $got != "$wanted" ]]; then
		cat "$copy/log"
		echo "tools/abi says $got of: $*"
		exit 1
	fi
}

event="class-decl name='timerhub_event'"
config="class-decl name='timerhub_config'"
member="/offset-in-bits='256'/,/<\/data-member>/d"

# The changed description has the symbol of a function that the library lacks.
falsified bad -e "s/\(<elf-symbol name='timerhub_\)now\('.*\)/&\n\1lost\2/"
# In the changed description a member of a struct is 32 bits further on.
falsified bad -e "/$event/,/<\/class-decl>/s/bits='128'/bits='160'/"
# In the changed description a struct without a size member lacks its last member.
falsified bad -e "/$event/s/size-in-bits='320'/size-in-bits='256'/" \
	-e "/$event/,/<\/class-decl>/{$member}"
# In the changed description a function lacks a parameter.
falsified bad -e "/function-decl name='timerhub_dispatch'/,/<\/function-decl>/{/name='max'/d}"
# In the changed description an option struct lacks its last member. tools/abi must allow this
# difference, because option structs may grow.
falsified good -e "/$config/s/size-in-bits='320'/size-in-bits='256'/" \
	-e "/$config/,/<\/class-decl>/{$member}"
# The end of the changed description is missing.
falsified bad -e "20,\$d"
# The changed description lacks a function of the library. tools/abi must allow the additional
# function.
falsified good -e "/function-decl name='timerhub_wait'/,/<\/function-decl>/d" \
	-e "/elf-symbol name='timerhub_wait'/d"

# The function `tagged TAG SED-COMMAND` makes a release with the name TAG. The description of the
# release's ABI is lib/abi/timerhub.abi, changed by SED-COMMAND.
tagged() {
	local git=(git -C "$copy" -c user.name=test -c user.email=test@localhost)
	sed -e "$2" "$root/lib/abi/timerhub.abi" >"$copy/lib/abi/timerhub.abi"
	"${git[@]}" add lib/abi/timerhub.abi
	"${git[@]}" commit --quiet --allow-empty --message "$1"
	"${git[@]}" tag "$1"
	cp "$root/lib/abi/timerhub.abi" "$copy/lib/abi/timerhub.abi"
}

# The function `told WANTED LINE` compares the library with the last release. The answer of
# tools/abi must be WANTED, and its output must have LINE.
told() {
	local got=good
	"$copy/tools/abi" "$library" >"$copy/log" 2>&1 || got=bad
	if [[ $got != "$1" ]] || ! grep -qx "== $2" "$copy/log"; then
		cat "$copy/log"
		echo "tools/abi says $got, and not: $2"
		exit 1
	fi
}

if command -v git >/dev/null; then
	git -C "$copy" init --quiet --template=
	lost="s/\(<elf-symbol name='timerhub_\)now\('.*\)/&\n\1lost\2/"
	tagged v1 "$lost"
	told bad 'against v1'
	tagged v2 ''
	told good 'against v2'
	# If the last release has another soname, its ABI may differ in any way.
	tagged v3 "1s/soname='[^']*'/soname='libtimerhub.so.9'/; $lost"
	told good 'v3 had another soname: not compared with'
fi

library=$journal
description=lib/abi/timerhub-journal.abi
task="class-decl name='timerhub_task'"
retry="function-decl name='timerhub_journal_retry'"
config="class-decl name='timerhub_journal_config'"

falsified bad -e "s/\(<elf-symbol name='timerhub_journal_\)put\('.*\)/&\n\1lost\2/"
falsified bad -e "/$task/,/<\/class-decl>/s/bits='128'/bits='160'/"
falsified bad -e "/$retry/,/<\/function-decl>/{/name='delay_ns'/d}"
# The changed description lacks the reserved last member of an option struct. tools/abi must allow
# this difference.
falsified good -e "/$config/s/size-in-bits='384'/size-in-bits='352'/" \
	-e "/$config/,/<\/class-decl>/{/offset-in-bits='352'/,/<\/data-member>/d}"
falsified good -e "/function-decl name='timerhub_journal_check'/,/<\/function-decl>/d" \
	-e "/elf-symbol name='timerhub_journal_check'/d"
