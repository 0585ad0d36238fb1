// Package compile turns mappings into programs: it reads a table's mapping into rules, row plans and emitters, has them
// proved and linted together with the mappings of the other tables, and derives what the program needs to run. All is
// its only entry.
//
// Files, from the top down:
//
//	compile.go   all tables of a configuration, in the order of the steps; secrets
//	preset.go    presets spelled out as mappings
//	rule.go      rules, conditions and row plans
//	emitter.go   entries under cells
//	check.go     combinations of options that cannot work
//	families.go  column families
//	when.go      hints for errors in CEL expressions
//	finish.go    what the program needs, once all rows have their class
//	hash.go      the hash that identifies a program
//	env.go       what templates may refer to
package compile
