// Package bigtable is the sandbox's Cloud Bigtable: the emulator of Google's client library behind a front that adds
// the service's limits and atomicity, and faults.
//
// What the front adds to the emulator: a refused call changes nothing; the hard limits are enforced; the entries of a
// bulk call are applied in any order and answered in several messages; garbage is collected on command, by the
// sandbox's clock; reads do not race with writes. Faults are off until they are injected, and random ones repeat with
// the seed.
//
// The front is a pair of gRPC interceptors. Its own calls to the emulator carry a header that lets them pass.
//
// Files, from the top down:
//
//	front.go      the emulator with its front: open, close
//	save.go       all tables to a file and back
//	calls.go      every call: faults, limits, then the emulator
//	bulk.go       MutateRows, entry by entry
//	collect.go    garbage collection
//	tables.go     admin calls; the front's own state of a table
//	aggregate.go  maxima and minima, which the emulator gets wrong
//	width.go      the sandbox's own limit of a row's width
//	emulator.go   the front's own calls to the emulator
//	limits.go     the service's limits
//	faults.go     the faults that can be injected
//	random.go     seeded random draws
package bigtable
