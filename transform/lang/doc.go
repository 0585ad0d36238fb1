// Package lang is the syntax of the mapping language: the model of a mapping file, the reader that
// fills it, and the parsers of patterns and templates. It does not depend on rows or changes;
// package transform compiles what this package has read.
//
// Files, from the top down:
//
//	parse.go        Parse: a mapping file and its blocks
//	emitter.go      an entry of cells
//	reader.go       reading and reporting, shared by all blocks
//	parts.go        which part of the configuration a key belongs to
//	normal.go       the file without comments and secrets, to store and hash
//	acknowledge.go  which warnings the author has acknowledged
//	mapping.go      the model that Parse fills
//	template.go     templates such as {name|filter(args)}
//	pattern.go      patterns such as USER#{id:d}
package lang
