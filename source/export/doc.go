// Package export reads a point-in-time export of a DynamoDB table from a folder, from S3 or from
// Google Cloud Storage: its manifests, and the items of its data files line by line.
//
// No item is returned before its file is verified against its checksum. The manifests have
// checksums of their own. A data file is copied to the scratch folder while its MD5 is computed,
// and its lines are read from that copy afterwards, so that an altered or truncated file is an
// error before its first item. Reading the file twice instead would need no disk, but would fetch
// each byte twice, and the second time it might be another file. The copy has no name: it vanishes
// with the process.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
//
// Files, from the top down:
//
//	export.go    open an export and check that it is complete and of the wanted table
//	whole.go     whether it is filtered, as DynamoDB describes it
//	locate.go    find the export below a URL
//	read.go      the lines of one data file
//	line.go      one line
//	manifest.go  the manifests and their checksums
//	store.go     folders, and what a URL opens
//	bucket.go    buckets of any service
//	s3.go        S3
//	gcs.go       Google Cloud Storage
//	probe.go     checks that exports can be listed, for replicator check
//	errors.go    errors with class and hint
package export
