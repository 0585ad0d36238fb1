// Package launch starts a job that copies an export or compares a target, and reports what came of
// it.
//
//	l := launch.New(place, stderr, terminal)
//	order, err := l.Await(ctx)           // the daemon opens it
//	code, err := l.Run(ctx, order, job)  // starts the job, shows progress, and returns the exit code
//
// Progress and exit code come from the marks of the files in Bigtable alone. Jobs end successfully
// after they were cancelled, and some go on after they ended; counters of engines are late, or
// wrong.
//
// Files, from the top down:
//
//	compare.go   runs a job that compares
//	launch.go    waits for the order, runs the job
//	plan.go      what a job would do
//	progress.go  shows how far it is
//	tally.go     adds up the marks
package launch
