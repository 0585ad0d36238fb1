// Package archive publishes archival events: items that DynamoDB's TTL deleted, as CloudEvents on a NATS subject. The
// packages below it keep them in objects:
//
//	ledger    the events on their way, and what became of them
//	object    one object: Parquet or JSON lines; and the form of a published event
//	bucket    where objects are: a directory, S3, Google Cloud Storage, Azure
//	layout    the names of objects
//	coverage  which records an object has
//	manifest  what an archive must hold
package archive

// Message is an event that is published.
type Message struct {
	ID   string // of the event, the same on every replay
	Body []byte // CloudEvents' structured JSON form
}
