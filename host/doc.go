// Package host is endpoints, and what differs between hosts and operating systems: locks on files,
// the room on a volume, the errors of a file system and of a port that is taken, processors.
//
// Files, from the top down:
//
//	endpoint.go       endpoints of services: plain or with TLS
//	partition.go      partitions of AWS
//	grpc.go           endpoints of gRPC services
//	host.go           what all systems share
//	processors.go     how many processors this process has
//	errors_unix.go    errors of the file system and of ports
//	errors_windows.go the same
//	file_unix.go      locks on files, and the room on a volume
//	file_windows.go   the same
//
// Windows is compiled by `make cross`; no test of this project runs on it.
package host
