#!/bin/sh
# Fetches the vendored browser files named in vendor.json and verifies them.
# Needs Go and npm (for "npm pack" only; nothing is installed or run).
# With -lock the checksums found are recorded: after changing a version.
set -eu
cd "$(dirname "$0")/../.."
exec go run ./static/internal/vendortool fetch "$@"
