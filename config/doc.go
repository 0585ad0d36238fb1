// Package config reads the one strict YAML file that configures replicator.
//
// Load returns a typed Config over defaults, together with every problem of the file at once: each with its path, line,
// what is wrong and what to do about it. Nothing here opens a connection: `replicator check` looks at the environment.
//
// Files, from the top down:
//
//	load.go          Load: parse, expand, decode, settle defaults, check
//	check.go         what values must be, alone and together
//	arn.go           tables of other accounts
//	bigtable.go      where rows are written, and what the keys of that must be
//	selection.go     entries that choose several tables: what they must be, and Expand
//	tablearchive.go  archive settings of a table, and what they need without a target
//	archive.go       where archival events go, and what its keys must be
//	backfill.go      how a table is copied: its keys, and what they must be
//	shadow.go        how reads of an application are made in Bigtable too
//	secrets.go       secrets in the file, and those that seal keys
//	expand.go        ${NAME} and ${file:PATH} in values
//	report.go        the reader and collector of problems, and checks of single values
//	config.go        the keys of the file, and their defaults
//	heap.go          how large the heap of run gets
//	protocol.go      periods of the protocol, which tests change
//	values.go        durations, sizes, starts, inline mappings, keys
package config
