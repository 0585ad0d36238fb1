// Package rollout keeps the format that the logs of a pipeline are written in while builds of two
// versions run side by side. A new version goes on in the older format, so that the older one can
// be started again at any moment; the format is raised once no build needs it any more (Rule 11).
//
//	row of the pipeline   the format that logs may be written in: raised by `replicator upgrade --finalize`, or by an
//	                      owner after 24 hours in which every member read the newest one
//	a log                 raised by its owner's snapshot, after the row; an owner follows the row while it runs
//
// A crash between the two leaves logs of the older format, which their next owners raise. The row does not protect a
// log from an older build, its own format does; the row makes the builds agree on when that is raised.
//
// Files, from the top down:
//
//	follow.go  the row as a running process follows it
//	agree.go   which members read which format, and for how long all have
//	row.go     the row, in Bigtable or in the archive's bucket
package rollout
