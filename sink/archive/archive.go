// Package archive makes archival events durable: items that DynamoDB's TTL deleted, as CloudEvents, in files
// by day, on a NATS subject, or both.
//
// Events arrive at least once; an event's id is the same on every replay, so that a reader can tell.
package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/transform"
)

// EventType is the CloudEvents type of all events.
const EventType = "dev.tailrace.item.expired"

// Options of an Archive; at least one of Dir and Subject is set.
type Options struct {
	Dir     string        // directory of the files by day; made when absent; one process at a time
	Subject string        // NATS subject
	Conn    *nats.Conn    // connection for Subject; stays the caller's
	Timeout time.Duration // of the acknowledgements of one Write on Subject; default 30 s
}

// Archive writes events to its places. Safe for concurrent use.
type Archive struct {
	files   *files
	subject *subject
	written *prometheus.CounterVec
}

// Open checks the places: the directory is writable and not another process's, the last line of each file is
// whole (else it is cut off: its event comes again), and whether a JetStream stream listens on the subject.
func Open(ctx context.Context, o Options, log *zap.Logger, reg prometheus.Registerer) (*Archive, error) {
	if o.Dir == "" && o.Subject == "" {
		return nil, errors.New("open archive: neither a directory nor a subject is named")
	}
	a := &Archive{written: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "tailrace_archive_events_total", Help: "Archival events made durable, by place; replays count again.",
	}, []string{"place"})}
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

// Close lets go of the directory.
func (a *Archive) Close() error {
	if a.files == nil {
		return nil
	}
	return a.files.close()
}

// Write makes the events durable in every place and returns nil then. After an error some may be durable:
// write them all again.
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
			return fmt.Errorf("encode event %s: %w", e.ID, err)
		}
		lines[i] = line{id: e.ID, day: e.Time.UTC().Format(time.DateOnly), body: body}
	}
	if a.files != nil {
		if err := a.files.write(lines); err != nil {
			return fmt.Errorf("write archive file: %w", err)
		}
		a.written.WithLabelValues("file").Add(float64(len(lines)))
	}
	if a.subject != nil {
		if err := a.subject.publish(ctx, lines); err != nil {
			return fmt.Errorf("publish to archive: %w", err)
		}
		a.written.WithLabelValues("subject").Add(float64(len(lines)))
	}
	return nil
}

// line is one encoded event.
type line struct {
	id   string
	day  string // UTC day of the event's own time: a replay finds the same file
	body []byte // without newline
}

// encode gives the event in CloudEvents' structured JSON form, one line, equal on every replay.
func encode(e *transform.Event) ([]byte, error) {
	ce := event.New(event.CloudEventsVersionV1)
	ce.SetID(e.ID)
	ce.SetSource(e.Source)
	ce.SetType(EventType)
	ce.SetSubject(e.Subject)
	ce.SetTime(e.Time)
	// SetData takes bytes for binary data and writes them as data_base64. The data is JSON, which stands in the event as
	// it is, under data (CloudEvents 1.0, JSON event format, section 3.1).
	ce.SetDataContentType(event.ApplicationJSON)
	ce.DataEncoded = e.Data
	if err := ce.Validate(); err != nil {
		return nil, err
	}
	return ce.MarshalJSON()
}
