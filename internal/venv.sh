#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs Python packages into a virtual environment of the project, from PyPI
# with the versions and checksums of a file:
#
#   internal/venv.sh e2e/moto/requirements.txt bin/moto
#
# Does nothing where that is done already.
set -eu

from=${1:?"say what to install: $0 REQUIREMENTS FOLDER"}
to=${2:?"say where to: $0 REQUIREMENTS FOLDER"}
done=$to/installed-requirements.txt

if cmp -s "$from" "$done"; then exit 0; fi
if ! command -v python3 >/dev/null; then
	echo "$0: python3 is missing: $to needs Python 3.10 or newer with venv and pip" >&2
	exit 1
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
	echo "$0: $(python3 --version) is too old: $to needs Python 3.10 or newer" >&2
	exit 1
fi
rm -rf "$to"
if ! python3 -m venv "$to"; then
	echo "$0: python3 -m venv failed, see above: on Debian and Ubuntu, apt-get install python3-venv" >&2
	exit 1
fi
"$to/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$from"
cp "$from" "$done"
