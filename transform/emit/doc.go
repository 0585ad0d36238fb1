// Package emit evaluates a compiled program: an item becomes rows and cells, a change becomes the Write that the sink
// applies, an expired item becomes an archival event.
//
// The way back stands here too, because it inverts the same templates and encodings. Nothing in the replicator calls
// it yet: Unmap turns a row back into its item (explain --row), Owned finds which columns of a shared row belong to an
// item (resync); Lossless and Resyncable say for which programs they are exact.
//
// Files, from the top down:
//
//	archive.go   archival events of items that TTL deleted
//	change.go    a change, or several coalesced ones, to a Write
//	wipes.go     rows that a removal of another item may delete
//	build.go     the rows entered and left, and their deletes, from the projections of old and new images
//	project.go   an item to rows and cells
//	owned.go     which columns of a row belong to an item
//	unmap.go     a row back to its item
//	lossless.go  whether every item comes back
//	expiry.go    which rule an item has by its key, and what that says about expired items
//	write.go     what the sink is given
package emit
