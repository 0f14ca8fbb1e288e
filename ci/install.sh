#!/usr/bin/env bash
# Installs the published program into a folder of its own, as FOLDER/bin/kurabe: ci/install.sh FOLDER [VERSION]. It needs Python 3.8
# with the module venv, and no compiler.
set -euo pipefail
python3 -m venv "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check "kurabe${2:+==$2}"
