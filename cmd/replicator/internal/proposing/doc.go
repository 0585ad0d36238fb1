// Package proposing makes the configuration that `replicator init` proposes: it looks at live tables and at samples of
// their items.
//
// Files, from the top down:
//
//	proposing.go  what is found out about each table
//	text.go       the configuration as YAML with comments
package proposing
