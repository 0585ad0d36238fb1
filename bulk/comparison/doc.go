// Package comparison compares a target with exports of its source tables, on the machines of a
// distributed engine: `replicator verify --workers` makes the plan, and settles what is found. It
// contains no engine: package pipe runs it in Apache Beam.
//
//	c, err := comparison.Shared(place)   // one for each process: the plan, its mappings, one client
//	err = c.Project(ctx, file, emit)     // the records of the items of a file, each with the range of its row
//	err = c.Compare(ctx, n, values)      // the records of a range with its rows; stores what is found
//
// Nothing is written but the findings in the folder of the comparison. Ranges that have findings
// are left out when a job is launched again.
//
// Files, from the top down:
//
//	comparison.go  files and ranges
//	value.go       records and counts as the engine carries them
//	place.go       where the plan is, and what the files of a process share
package comparison
