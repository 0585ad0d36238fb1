// Package manifest lists what an archive must hold: a chain of files for each table; each file closes hours and
// names their objects, and the hash of the file before it. It also checks that an archive holds just that.
//
// Files, from the top down:
//
//	verify.go    Verify: a table's archive against its manifests
//	objects.go   one object against its manifest; objects that no manifest names
//	covered.go   records that are archived twice, or were never archived
//	hours.go     which hours are closed, and whether their numbers add up
//	report.go    what was found, and the verdict
//	chain.go     the manifests in order, and what is wrong with their order
//	ordered.go   several calls at once, with results in order
//	manifest.go  the form of a manifest
package manifest
