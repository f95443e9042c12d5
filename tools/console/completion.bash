# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Completion of the tools for bash: the options and commands that a tool's help lists, and for
# timerhub-top the processes that it can show. Where none of these fits, bash completes file names.

_timerhub() {
	local word=$2 before=$3 help commands words=
	help=$("$1" --help 2>/dev/null)
	commands=$(sed -n 's/^  \([a-z|]*\) .*/\1/p' <<<"$help" | tr '|' '\n')
	if [[ $before == -* && $help == *"$before "[A-Z]* ]]; then
		return # the value of an option
	elif [[ $word == -* ]]; then
		words=$(tr -c 'a-zA-Z0-9-' '\n' <<<"$help" | grep -E '^--?[a-zA-Z1]')
	elif [[ -z $commands ]]; then
		words=$("$1" 2>/dev/null | awk 'NR > 1 { print $1 }')
	elif ! printf '%s\n' "${COMP_WORDS[@]:1:COMP_CWORD-1}" | grep -qxF "$commands"; then
		words=$commands
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _timerhub timerhub-relay timerhub-store timerhub-top
