#!/bin/sh
# Prints the packages in which nothing runs beside anything else, neither in their code nor in their tests: the race detector
# has nothing to find there, and makes them ten times as slow. What others call at the same time is in the tests of those.
set -eu
beside='^[[:space:]]*go (func|[a-z]|\()|\.Go\(|errgroup|"sync|httptest|\.Parallel\(|synctest|net\.Listen|/sandbox"|os/exec'
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | while read -r path dir; do
	[ -n "$path" ] || continue
	grep -qE "$beside" "$dir"/*.go || echo "$path"
done
