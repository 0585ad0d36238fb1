// Package bucket stores the objects of an archive: in a directory, in S3, in Google Cloud Storage, in Azure Blob
// Storage.
//
// An object is written once, under a name that nothing else has, and never overwritten or deleted. The store itself
// decides whether a name is free, at the moment of the write. So when two processes create one name, even if one of
// them was frozen for hours, exactly one succeeds and the other gets ErrExists.
//
// Files, from the top down:
//
//	probe.go      does the store refuse a name that is taken
//	bucket.go     the interface, and what a URL opens
//	lifecycle.go  rules of the bucket's lifecycle that delete objects of the archive
//	directory.go  the store in a directory
//	walk.go       its listing
//	temporary.go  its temporary files, and what a crash left of them
//	s3.go         S3, and servers that speak its protocol
//	gcs.go        Google Cloud Storage
//	azure.go      Azure Blob Storage
//	cloud.go      what the three have in common
//	reader.go     reading by ranges, and ahead
//	reply.go      what the services' errors mean
//	create.go     what is checked before an object is created
//	errors.go     errors with class and hint
package bucket
