// Package archive makes archival events durable: items that DynamoDB's TTL deleted, as CloudEvents, in one file for
// each day, on a NATS subject, or both.
//
// Events are written at least once. An event has the same id on every replay, so that readers can drop duplicates.
package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/transform"
)

// EventType is the CloudEvents type of all events.
const EventType = "dev.tailrace.item.expired"

// Options of an Archive; at least one of Dir and Subject is set.
type Options struct {
	Dir     string        // directory of the files; created if absent; used by one process at a time
	Subject string        // NATS subject
	Conn    *nats.Conn    // connection for Subject; the caller closes it
	Timeout time.Duration // for the acknowledgements of one Write on Subject; default 30 s
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return o
}

// Archive writes events to files, to a subject, or to both. Safe for concurrent use.
type Archive struct {
	files   *files
	subject *subject
	metrics *metrics
}

// Open opens directory and subject. It returns an error if the directory is not writable or used by another process,
// cuts off the last line of each file if it is incomplete (its event is written again), and looks for a JetStream
// stream on the subject.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Archive, error) {
	if o.Dir == "" && o.Subject == "" {
		return nil, errors.New("open archive: neither a directory nor a subject is named")
	}
	o = o.withDefaults()
	a := &Archive{metrics: newMetrics(reg)}
	if o.Subject != "" {
		s, err := openSubject(ctx, o, log)
		if err != nil {
			return nil, fmt.Errorf("open archive subject: %w", err)
		}
		a.subject = s
	}
	if o.Dir != "" {
		f, err := openFiles(o.Dir, log)
		if err != nil {
			return nil, fmt.Errorf("open archive directory: %w", err)
		}
		a.files = f
	}
	return a, nil
}

// Close unlocks the directory.
func (a *Archive) Close() error {
	if a.files == nil {
		return nil
	}
	return a.files.close()
}

// Write makes the events durable, in the files and on the subject, and returns nil then. After an error some may be
// durable, and the caller has to write all of them again.
//
// Rule 1: A mark never passes a change that is not durable. Files are synced, publications acknowledged.
func (a *Archive) Write(ctx context.Context, events []*transform.Event) error {
	if len(events) == 0 {
		return nil
	}
	lines := make([]line, len(events))
	for i, e := range events {
		body, err := encode(e)
		if err != nil {
			return fmt.Errorf("encode event %s: %w", e.ID(), err)
		}
		lines[i] = line{id: e.ID(), day: e.Time().Format(time.DateOnly), body: body}
	}
	if a.files != nil {
		if err := a.files.write(lines); err != nil {
			return fmt.Errorf("write archive file: %w", err)
		}
		a.metrics.events.WithLabelValues("file").Add(float64(len(lines)))
	}
	if a.subject != nil {
		if err := a.subject.publish(ctx, lines); err != nil {
			return fmt.Errorf("publish to archive: %w", err)
		}
		a.metrics.events.WithLabelValues("subject").Add(float64(len(lines)))
	}
	return nil
}

// line is one encoded event.
type line struct {
	id   string
	day  string // UTC day of the event's own time, so that a replay is written to the same file
	body []byte // without newline
}

// encode returns the event in CloudEvents' structured JSON form, in one line. It is the same on every replay.
func encode(e *transform.Event) ([]byte, error) {
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
