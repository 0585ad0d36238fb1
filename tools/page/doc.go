// Package page tests the status page in a Chromium, beside a replicator that is a process of its
// own: tests freeze and kill it. REPLICATOR names the program; `make page` builds and runs all.
//
//	page_test.go      several tabs, a frozen and a killed process
//	pictures_test.go  `make pictures`: provokes each state and writes docs/pictures
//	shop_test.go      the tables, writers and faults behind the pictures
//	stage_test.go     a replicator, a sandbox and a browser
package page
