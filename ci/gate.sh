#!/usr/bin/env bash
# Measures two builds, schemas or settings as two targets of one run, interleaved on this machine, and judges the second. For any
# CI server; results go to .kurabe/: gate.md (a comment), gate.html (a page), gate.junit.xml, gate.json.
#
#   KURABE        the program that measures (kurabe)
#   SUITE         the suite file; its targets are replaced by the two below
#   SCRIPTS       in its place, pgbench scripts, separated by spaces: 'browse.sql@3 order.sql'
#   BASE, HEAD    the two targets: each a URL ('up:postgres?setup=main.sql'), or a command that starts one and prints its URL first,
#                 as 'kurabe up' does
#   FAIL_ON       the criterion (slower:5%)
#   UNDECIDED     what an undecided gate does: pass, or fail with code 7 (fail)
#   OPTIONS       further options of 'kurabe gate', separated by spaces: '--write --rounds 20'
set -uo pipefail

kurabe=${KURABE:-kurabe} base=${BASE:?} head=${HEAD:?}
read -ra what <<<"${SCRIPTS:-${SUITE:?SUITE or SCRIPTS}}"
read -ra options <<<"${OPTIONS:-}"
mkdir -p .kurabe
export KURABE_RUNS=$PWD/.kurabe/runs

started=()
stop() {
    for process in "${started[@]}"; do kill -TERM "$process" 2>/dev/null; done
    wait
}
trap stop EXIT
trap 'exit 130' INT TERM

# Sets `url` to the target of a build: itself, or what its command prints.
target() {
    url=$2
    [[ $2 == *[[:space:]]* ]] || return 0
    exec {out}< <(exec bash -c "exec $2" 2>".kurabe/$1.log")
    started+=($!)
    if ! read -r url <&"$out"; then
        echo "The $1 build printed no URL: $2" >&2
        cat ".kurabe/$1.log" >&2
        exit 3
    fi
}
target base "$base" && base=$url
target head "$head" && head=$url
# Without passwords: logs of CI servers are read by many.
echo "base: $base, head: $head" | sed -E 's#(://[^/@: ]*):[^/@ ]*@#\1:***@#g' >&2

code=0
# The URLs may have passwords, and everybody on the machine can read arguments: they are lines of standard input.
printf '%s\n' "$base" "$head" | "$kurabe" gate "${what[@]}" - - --fail-on "${FAIL_ON:-slower:5%}" --quiet "${options[@]}" \
    --export-markdown .kurabe/gate.md --export-html .kurabe/gate.html \
    --export-junit .kurabe/gate.junit.xml --export-json .kurabe/gate.json || code=$?
# GitHub shows this summary beside the checks of a pull request.
if [[ -n ${GITHUB_STEP_SUMMARY:-} && -f .kurabe/gate.md ]]; then cat .kurabe/gate.md >>"$GITHUB_STEP_SUMMARY"; fi
if [[ -n ${GITHUB_OUTPUT:-} ]]; then echo "exit-code=$code" >>"$GITHUB_OUTPUT"; fi
if [[ $code == 7 && ${UNDECIDED:-fail} == pass ]]; then
    echo "The gate is undecided: a slowdown is neither shown nor excluded." >&2
    exit 0
fi
exit "$code"
