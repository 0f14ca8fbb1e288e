#!/usr/bin/env bash
# Runs a suite and compares it with the last run of the base branch, for any CI server. Results go to .kurabe/.
#
#   KURABE        the program (kurabe)
#   SUITE         the suite file
#   BASE          the base branch, which is also the label of its runs (main)
#   FAIL_ON       the criterion (slower:5%)
#   INCONCLUSIVE  what an inconclusive gate does: pass, or fail with code 7 (fail)
#   IS_BASE       true on the base branch: the run is recorded with the label, and nothing is compared (false)
#
# .kurabe/runs.tar.gz has the last run of the base branch. The CI server keeps it between pipelines.
set -uo pipefail

kurabe=${KURABE:-kurabe} suite=${SUITE:?} base=${BASE:-main}
mkdir -p .kurabe
export KURABE_RUNS=$PWD/.kurabe/runs

if [[ ${IS_BASE:-false} == true ]]; then
    "$kurabe" run -f "$suite" --label "$base" --quiet || exit
    "$kurabe" runs export last -o .kurabe/runs.tar.gz
    exit
fi

if [[ ! -f .kurabe/runs.tar.gz ]]; then
    echo "There is no run of $base yet: nothing is compared." >&2
    exit 0
fi
"$kurabe" runs import .kurabe/runs.tar.gz || exit

code=0
"$kurabe" gate "$suite" --against "$base" --fail-on "${FAIL_ON:-slower:5%}" --quiet \
    --markdown .kurabe/gate.md --junit .kurabe/gate.junit.xml --json .kurabe/gate.json || code=$?
# GitHub shows this summary beside the checks of a pull request.
if [[ -n ${GITHUB_STEP_SUMMARY:-} && -f .kurabe/gate.md ]]; then cat .kurabe/gate.md >>"$GITHUB_STEP_SUMMARY"; fi
if [[ -n ${GITHUB_OUTPUT:-} ]]; then echo "exit-code=$code" >>"$GITHUB_OUTPUT"; fi
if [[ $code == 7 && ${INCONCLUSIVE:-fail} == pass ]]; then
    echo "The gate is inconclusive: a slowdown is neither shown nor excluded." >&2
    exit 0
fi
exit "$code"
