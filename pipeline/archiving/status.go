package archiving

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// Status is the status of a table's archive, for operators.
type Status struct {
	Objects bool `json:"objects"` // whether there are objects, and a subject
	Subject bool `json:"subject"`

	Waiting     int64         `json:"waiting_events"` // in no object yet
	Oldest      string        `json:"oldest_hour,omitempty"`
	Unpublished uint64        `json:"unpublished_entries"` // of the stream; not all have events
	Intents     int           `json:"open_intents"`
	Bytes       uint64        `json:"stream_bytes"`
	Limit       uint64        `json:"stream_limit"`
	Head        manifest.Head `json:"head"`
	// Closed is the time before which every deletion is in objects that a manifest names.
	Closed  string        `json:"closed_until,omitempty"`
	Through change.Millis `json:"through,omitempty"`
	// ObjectsSince and SubjectSince are set where a sink was configured later than the archive.
	ObjectsSince string `json:"objects_since,omitempty"`
	SubjectSince string `json:"subject_since,omitempty"`
	// Stalled is set while the stream has no room for events, and OnStall is what becomes of them:
	// hold or letter.
	Stalled bool     `json:"stalled"`
	OnStall string   `json:"on_stall"`
	Trouble string   `json:"trouble,omitempty"` // of the stream
	Lost    []string `json:"lost,omitempty"`
	Healing string   `json:"healing,omitempty"` // which gap is being healed, and from which export
	// ObjectsTrouble and SubjectTrouble say why a sink fails.
	ObjectsTrouble string `json:"objects_trouble,omitempty"`
	SubjectTrouble string `json:"subject_trouble,omitempty"`
}

// onStall returns archive.on_stall as the configuration has it.
func onStall(letters bool) string {
	if letters {
		return "letter"
	}
	return "hold"
}

func (s *Status) trouble(sink, reason string) {
	if sink == SinkObjects {
		s.ObjectsTrouble = reason
	} else {
		s.SubjectTrouble = reason
	}
}

// Status returns what is known now. It is cheap.
func (a *Archiver) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	s.Through = change.Millis(a.through.Load())
	return s
}

func (a *Archiver) note(f func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.status)
}

// observe notes the state of the stream.
func (l *life) observe(ctx context.Context) {
	full, err := l.w.fraction(ctx, false)
	if err != nil {
		return
	}
	m, table := l.a.o.Metrics, l.a.o.Table
	l.w.view(func(s *ledger.State) {
		full = l.w.fractionLocked() // an entry that came meanwhile may have filled it, and Store has said so
		l.a.noteHead(s)
		waiting, _ := s.Waiting()
		l.a.note(func(st *Status) {
			st.Waiting, st.Intents, st.Head = waiting, len(s.Intents), s.Head
			st.Oldest, st.Closed, st.Unpublished = "", "", 0
			if open := s.OpenParts(); len(open) > 0 {
				st.Oldest = open[0].Hour.Time().Format(time.RFC3339)
			}
			if s.Head.N > 0 {
				st.Closed = s.Closed.Time().Format(time.RFC3339)
			}
			if s.Subject != nil {
				st.Unpublished = s.Seq - min(s.Seq, max(*s.Subject, l.published.Load()))
			}
			if s.ObjectsSince != 0 {
				st.ObjectsSince = s.ObjectsSince.Time().Format(time.RFC3339)
			}
			if s.SubjectSince != 0 {
				st.SubjectSince = s.SubjectSince.Time().Format(time.RFC3339)
			}
			st.Lost = nil
			for _, lost := range s.Lost {
				st.Lost = append(st.Lost, lost.ID)
			}
			st.Bytes, st.Limit = l.w.info.Bytes+l.w.added, l.w.info.MaxBytes
			st.Stalled = st.Stalled && full >= holdAt
		})
		oldest := 0.0
		if open := s.OpenParts(); len(open) > 0 {
			oldest = max(0, l.a.o.Now().Time().Sub(open[0].Hour.Time()).Seconds())
		}
		m.oldest.WithLabelValues(table).Set(oldest)
		m.intents.WithLabelValues(table).Set(float64(len(s.Intents)))
		m.waiting.WithLabelValues(table).Set(float64(waiting))
	})
	m.used.WithLabelValues(table).Set(full)
}

// Metrics counts what the archives of all tables do.
type Metrics struct {
	events                         *prometheus.CounterVec // table, stage, class
	objects, bytes, manifests      *prometheus.CounterVec // table
	retries                        *prometheus.CounterVec // table, sink
	upload                         *prometheus.HistogramVec
	oldest, intents, waiting, used *prometheus.GaugeVec
}

// countEvents counts events that became durable.
func (m *Metrics) countEvents(table, stage string, class transform.EventClass, n int64) {
	m.events.WithLabelValues(table, stage, string(class)).Add(float64(n))
}

// NewMetrics registers the metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_archive_" + name, Help: help},
			append([]string{"table"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_archive_" + name, Help: help}, []string{"table"})
	}
	m := &Metrics{
		events: counter("events_total",
			"Archival events that became durable, by stage (stream: in the archive's stream, objects: in objects; healed: "+
				"those of an export) and by class: who deleted the item.", "stage", "class"),
		objects:   counter("objects_total", "Objects that were created in the bucket."),
		bytes:     counter("object_bytes_total", "Bytes of these objects."),
		manifests: counter("manifests_total", "Manifests that were written: each closes hours."),
		retries:   counter("retries_total", "Times that a sink of the archive began again after an error.", "sink"),
		upload: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tailrace_archive_upload_seconds", Help: "Time to create an object.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"table"}),
		oldest: gauge("oldest_unarchived_seconds",
			"Age of the hour of the oldest event that is in no object; 0 when there is none."),
		intents: gauge("open_intents", "Objects that may have been created or not."),
		waiting: gauge("waiting_events", "Events that are in no object yet."),
		used:    gauge("stream_used_ratio", "Part of the limit of the archive's stream that is in use."),
	}
	if reg != nil {
		reg.MustRegister(m.events, m.objects, m.bytes, m.manifests, m.retries, m.upload, m.oldest, m.intents, m.waiting,
			m.used)
	}
	return m
}
