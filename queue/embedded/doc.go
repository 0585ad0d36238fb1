// Package embedded runs a NATS server in this process, on a store in a directory: it locks the store, shows other
// processes how to reach the server, watches the store's volume, and opens the store again after the volume
// was full or gave errors.
//
// Server.Run is called by one goroutine; Server and DiskWatch may be used by several.
//
// Files, from the top down:
//
//	maintain.go       what to do about a full volume: the reserve, opening the store again
//	server.go         start and stop the server, its options and health
//	opening.go        second names of all files while the server opens the streams
//	leftovers.go      what a kill leaves of streams that were being made or deleted
//	block.go          whether a block of a stream holds a message
//	described.go      what a kill during a change of limits leaves of a stream
//	readable.go       whether files can be read, and the volume be written
//	folders.go        the folders of the streams
//	lock.go           the locks that let one process at a time open the store, a waiting daemon before commands
//	clientfile.go     how other processes reach the server
//	disk.go           the room on the volume, compared with what the logs may still take
//	reserve.go        a file that holds room for when the volume is full
//	reserve_linux.go  allocates the reserve with fallocate
//	reserve_other.go  allocates the reserve by writing zeros
//	volume.go         the free space and permissions of a directory
//	metrics.go        gauges of the volume
package embedded
