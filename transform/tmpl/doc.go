// Package tmpl compiles and runs the patterns and templates of mappings: a pattern cuts a key into
// captures, a template joins captures and attributes into bytes. A template also has a shape, a
// superset of the texts that it can give, from which the compiler proves that two templates never
// give the same bytes.
//
// Files, from the top down:
//
//	compile.go   New: references, filters and segment modes of a template
//	common.go    the values that follow from a text that either of two templates gave
//	hole.go      the place of a variable in a template, for the way back to the item
//	piece.go     the parts of a template, for readers of the rows that it gives
//	values.go    the values of references out of a text, and the text that a pattern matches
//	template.go  Template and its evaluation
//	filter.go    the filters
//	buckets.go   filters that put many values into one text: days, hours, quotients, beginnings
//	beginning.go what the beginning of a text, or its bounds, show of a pattern
//	shape.go     supersets of texts, and whether two overlap
//	pattern.go   patterns and captures
//	refusal.go   why a mapping cannot map an item
package tmpl
