// Package object writes and reads one object of an archive: archival events of one class and hour, in Parquet or in
// JSON lines, and a footer that describes what the object holds.
//
// # Parquet
//
// Compressed with zstd, in row groups of at most 16 MB, or of one item. The columns:
//
//	id          string            stream/shard/sequence: the same on every replay
//	deleted_at  timestamp (ms)    when the item was deleted, UTC
//	source      string            ARN of the table
//	stream      string            label of the table's stream
//	shard       string
//	sequence    string            21 to 40 digits
//	version     int64             orders the changes of an item
//	keys        string            the item's key in canonical typed JSON
//	item        string, nullable  the item in DynamoDB's typed JSON; null where the stream has no old image
//	expires     int64, nullable   TTL attribute, seconds since 1970; null where it is not a whole number
//	…                             the configured columns, all nullable, sorted by name
//	_misfits    string, nullable  JSON list of the columns that are null because the value did not fit
//
// Table, class, day and hour are in the partition (package layout). Columns are only ever added, so that readers unite
// objects by the names of their columns.
//
// # Configured columns
//
//	archive:
//	  columns:
//	    customer: string                                      # attribute customer
//	    city:     {path: address.city, type: string}          # member of a map
//	    odd:      {path: [a.b, "say \"x\""], type: json}      # names that hold dots
//	    price:    {path: price, type: "decimal(38,10)"}
//
// A type takes the values that it can hold without loss; double alone may round. Any other value is null in the column,
// and the column's name is in _misfits: the value itself is in item. Absent attributes and DynamoDB's NULL are null.
//
//	string          S, and N as canonical decimal text
//	int64           N, integers of 64 bits
//	double          N, rounded
//	bool            BOOL
//	timestamp_s     N: whole seconds since 1970, in the years 1 to 9999
//	timestamp_ms    N: whole milliseconds since 1970, in the years 1 to 9999
//	decimal(p,s)    N with at most s digits after the point and p-s before it; p up to 38
//	json            any value, as plain JSON: binaries in base64, sets as arrays
//
// # JSON lines
//
// One CloudEvent in structured JSON on each line, in zstd frames of about 4 MB with checksums. A frame holds whole
// lines. A skippable frame ends the object, which decoders pass over:
//
//	4 bytes  magic 0x184D2A57, little-endian
//	4 bytes  length of what follows, little-endian
//	n bytes  the footer, JSON
//	4 bytes  CRC-32 (IEEE) of the footer, little-endian
//	4 bytes  n, little-endian
//	8 bytes  "TRFOOT01"
//
// # Footer and digest
//
// In Parquet the footer is in the key/value metadata: "tailrace". "tailrace.crc32" is the CRC-32 of
// all metadata, in hexadecimal, computed with 00000000 in its own place; the footer holds the
// checksums of the row groups.
//
// The digest is the same in both formats: SHA-256 over, for each event in order, the length of the id in 8 bytes
// (big-endian), the id, and a byte 1 with the SHA-256 of the item's bytes, or a byte 0 where there is no item. Items
// are written without white space between their tokens.
//
// Files, from the top down:
//
//	verify.go   Verify: recomputes the contents of the footer
//	object.go   Write, Read, ReadFooter
//	parquet.go  writes Parquet
//	groups.go   reads Parquet
//	lines.go    writes JSON lines
//	frames.go   reads JSON lines
//	schema.go   the columns of Parquet
//	convert.go  values of configured columns
//	column.go   configured columns: names, types, validation
//	row.go      an event as it is read
//	footer.go   the footer
//	digest.go   digest, items without white space
package object
