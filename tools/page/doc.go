// Package page tests the status page in a Chromium, beside a replicator that is a process of its own: tests freeze and kill
// it. REPLICATOR names the program; `make page` builds and runs all.
package page
