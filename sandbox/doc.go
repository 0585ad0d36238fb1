// Package sandbox runs DynamoDB with Streams, S3 for its exports, Cloud Bigtable and NATS on
// loopback, for laptops, demonstrations, tests and benchmarks. The servers speak the real
// protocols, so the usual clients work unchanged. They behave like the services, and with the
// faults of the services when faults are injected.
//
//	w := sandbox.NewWorld(t, sandbox.WorldOptions{Compare: compare}) // in a test
//	w.CreateTable("Orders")
//	w.Put("Orders", "pk", "sk", `"price": {"N": "1"}`)
//	w.Until("all is applied", applied) // a deadline that renews while something moves
//	w.Equal("Orders")                  // cell by cell, through Compare
//
//	s, err := sandbox.Start(sandbox.Options{}) // elsewhere: ExampleStart runs
//	err = s.Faults.Inject(fault.Rule{Effect: fault.Reset, Operation: "PutItem", Times: 1})
//
// README.md has a picture of the packages below this one.
//
// Files, from the top down:
//
//	run.go           the command `replicator sandbox`
//	world.go         what a test does to its tables
//	volume_linux.go  small file systems, for tests that fill one
//	volume_other.go  none elsewhere
//	sandbox.go       starts and stops the servers
//	call.go          one DynamoDB call
//	save.go          what outlives a restart
//	remembered.go    the sandbox that runs on this machine, for `sandbox env`
//	watch.go         waits for facts, with a deadline that renews
package sandbox
