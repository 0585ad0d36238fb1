// Package change is the model of one change of one DynamoDB item, and its wire form.
//
//	records, next, err := change.ScanPage(body, nil) // of a GetRecords reply; nothing is decoded
//	r.Version = clock.Next(r.Created)                // once, before the log
//	image, err := decoder.Image(r.New)               // only what is needed
//	key, err := schema.Canonical(nil, keys)          // names the item, however the record writes it
//
// ExampleScanPage runs. The package holds what all other packages share: the records of a raw
// GetRecords page, found by a scanner that decodes nothing; the decoded attribute values of an
// image; canonical keys; the position and the page of a feed; and the scalar types of the system,
// times, versions and sequence numbers. It imports the standard library only and depends on neither
// AWS nor NATS nor Bigtable.
//
// Files, from the top down:
//
//	wire.go    records as the log stores them
//	record.go  the records of a page, found without decoding
//	members.go the members of any JSON object, found without decoding
//	key.go     canonical keys and their hash
//	json.go    values in canonical JSON
//	value.go   images and attribute values
//	size.go    how large an item is for DynamoDB
//	expiry.go  whether an item had expired when it was deleted
//	number.go  canonical numbers
//	scan.go    the JSON scanner below all of them
//	change.go  records, pages, changes, the version clock
//	stream.go  when a stream was enabled, and up to when it is complete
//	scalar.go  Millis, Version, SequenceNumber
package change
