// Package emit evaluates a compiled program: an item becomes rows and cells, a change becomes the
// Write that the sink applies, an expired item becomes an archival event.
//
// The inverse is here too, because it uses the same templates and encodings: Unmap turns a row back
// into its item (for explain --row; it has no caller yet), and Owned finds the columns of a shared
// row that belong to an item. Lossless and Resyncable report whether Unmap and Owned are exact for
// a program.
//
// Files, from the top down:
//
//	archive.go   archival events of items that TTL deleted
//	event.go     an archival event, its id and its JSON
//	resync.go    one item read from the table itself to a Write, without an old image
//	held.go      what the rows hold of an item that is resynced
//	outlive.go   what may remain in the target without its item
//	origins.go   the plans that may have given an item's rows, and its columns there
//	item.go      how guards and markers name an item
//	change.go    a change, or several coalesced ones, to a Write
//	wipes.go     rows that a removal of another item may delete
//	build.go     the rows entered and left, and their deletes, from the projections of old and new images
//	project.go   an item to rows and cells
//	rowkey.go    the key of the one item that a row can belong to
//	owned.go     which columns of a row belong to an item
//	unmap.go     a row back to its item
//	lossless.go  whether every item can be read back from its row
//	columns.go   columns with the same name for every item
//	expiry.go    the rule that an item's key decides, and its policy for items that TTL deletes
//	write.go     Write, which the sink applies, and its parts
package emit
