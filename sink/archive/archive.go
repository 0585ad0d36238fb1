// Package archive publishes archival events: items that DynamoDB's TTL deleted, as CloudEvents on a NATS subject. The
// packages below it keep them in objects:
//
//	ledger    the events on their way, and what became of them
//	object    one object: Parquet or JSON lines
//	bucket    where objects are: a directory, S3, Google Cloud Storage, Azure
//	layout    the names of objects
//	coverage  which records an object has
//	manifest  what an archive must hold
package archive

import (
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/tailrace-cdc/replicator/transform"
)

// EventType is the CloudEvents type of all events.
const EventType = "dev.tailrace.item.expired"

// Encode returns the event in CloudEvents' structured JSON form, in one line. It is the same on every replay.
func Encode(e *transform.Event) ([]byte, error) {
	ce := event.New(event.CloudEventsVersionV1)
	ce.SetID(e.ID())
	ce.SetSource(e.Source)
	ce.SetType(EventType)
	ce.SetSubject(e.Subject)
	ce.SetTime(e.Time())
	// SetData would treat the bytes as binary data and write them as data_base64. But the data is JSON, which belongs
	// into the member data as it is (CloudEvents 1.0, JSON event format, section 3.1).
	ce.SetDataContentType(event.ApplicationJSON)
	ce.DataEncoded = e.Data()
	if err := ce.Validate(); err != nil {
		return nil, err
	}
	return ce.MarshalJSON()
}
