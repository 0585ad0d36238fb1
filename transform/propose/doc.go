// Package propose works on samples: of a table without a mapping, to propose one, and of a table with a mapping, to
// report what the mapping would do to its items. It has no I/O: callers add the items.
//
// Files, from the top down:
//
//	survey.go   Survey: sampled items run through a mapping
//	places.go   whether two items write the same row or cell
//	sampler.go  Sampler: what the items of a table without a mapping show
//	mapping.go  the text of a proposed mapping
//	rules.go    the rules of a proposal
//	kinds.go    kinds of items, recognized by words in their keys
//	heads.go    what rows begin with, and whether they all go to one place
//	splits.go   keys at which a new table is split
package propose
