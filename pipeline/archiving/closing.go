package archiving

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// lateClose is how long after its end an hour is kept open: records may be late.
const lateClose = 5 * time.Minute

// closeHours writes a manifest when hours are over: everything of them is in the stream, and in
// objects that are there.
func (l *life) closeHours(ctx context.Context) error {
	m := l.nextManifest()
	if m == nil {
		return nil
	}
	text, head, err := manifest.Encode(m)
	if err != nil {
		return err
	}
	name := layout.Manifest(l.a.o.Table, m.N)
	err = l.put(ctx, name, text)
	if errors.Is(err, bucket.ErrExists) {
		// An earlier owner wrote it, and crashed before it stored the entry.
		return l.adoptManifests(ctx, l.adoptFrom())
	}
	if err != nil {
		return inBucket("write "+name, err)
	}
	l.a.o.Metrics.manifests.WithLabelValues(l.a.o.Table).Inc()
	l.a.o.Logger.Info("hours of the archive are closed", zap.Uint64("manifest", m.N), zap.Int("hours", len(m.Hours)))
	return l.w.append(ctx, writtenAs(m, head))
}

// put creates a small file in the bucket.
func (l *life) put(ctx context.Context, name string, text []byte) error {
	f, err := l.a.o.temporary()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := bytes.NewReader(text).WriteTo(f); err != nil {
		return err
	}
	return l.a.o.Objects.Create(ctx, name, f, int64(len(text)))
}

// nextManifest returns the manifest that closes all hours that can be closed; nil when there is
// none.
func (l *life) nextManifest() (m *manifest.Manifest) {
	until := l.closable()
	l.w.view(func(s *ledger.State) {
		if until <= s.Closed {
			return
		}
		for key := range s.Parts {
			if key.Hour < until {
				return
			}
		}
		for i := range s.Intents {
			if s.Intents[i].Hour < until {
				return
			}
		}
		m = &manifest.Manifest{
			N: s.Head.N + 1, Prev: s.Head.Hash, Pipeline: l.a.o.Pipeline, Table: l.a.o.Table,
			Through: change.Millis(l.a.through.Load()), Last: s.Seq, Hours: l.hours(s, until),
		}
	})
	return m
}

// hours returns the hours of a manifest: the hours that it closes, and hours closed earlier that
// got more objects.
func (l *life) hours(s *ledger.State, until layout.Hour) []manifest.Hour {
	all := map[ledger.PartKey]*manifest.Hour{}
	at := func(key ledger.PartKey) *manifest.Hour {
		if all[key] == nil {
			all[key] = &manifest.Hour{Hour: key.Hour, Class: key.Class, Supplement: key.Hour < s.Closed}
		}
		return all[key]
	}
	for hour := s.Closed; hour < until; hour++ {
		at(ledger.PartKey{Class: transform.ClassTTL, Hour: hour})
	}
	for _, o := range s.Objects {
		if o.Hour < until {
			h := at(ledger.PartKey{Class: o.Class, Hour: o.Hour})
			h.Objects = append(h.Objects, o.Object)
			h.Events += o.Events
		}
	}
	hours := make([]manifest.Hour, 0, len(all))
	for key, h := range all {
		c, known := s.Counts[key.Hour]
		if key.Class == transform.ClassTTL {
			h.Deleted, h.Skipped, h.Letters = c.Deleted, c.Skipped, c.Letters
		}
		h.Added = h.Supplement && (c.Added || !known && s.Forgotten(key.Hour))
		if key.Class != transform.ClassHealed { // the hour is incomplete in the other classes
			h.Incomplete, h.Counted = l.facts(s, key)
		}
		slices.SortFunc(h.Objects, func(a, b manifest.Object) int { return cmp.Compare(a.Name, b.Name) })
		hours = append(hours, *h)
	}
	slices.SortFunc(hours, func(a, b manifest.Hour) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Class, b.Class))
	})
	return hours
}

// facts returns why an hour may lack events, and how many deletions by TTL were counted when they
// were read.
func (l *life) facts(s *ledger.State, key ledger.PartKey) (incomplete []string, counted *int64) {
	facts := l.a.o.Facts(key.Hour)
	incomplete = slices.Clone(facts.Incomplete)
	for _, lost := range s.Lost {
		if lost.Since <= key.Hour && key.Hour <= lost.Until {
			incomplete = append(incomplete, lost.ID)
		}
	}
	slices.Sort(incomplete)
	if key.Class == transform.ClassTTL && len(incomplete) == 0 && (s.Whole || key.Hour > s.Began) {
		counted = facts.Counted
	}
	return slices.Compact(incomplete), counted
}

// closable returns the hour before which all are over, and everything of them is in the stream.
func (l *life) closable() layout.Hour {
	through := time.UnixMilli(l.a.through.Load())
	if through.Unix() <= 0 {
		return 0
	}
	return layout.HourOf(through.Add(-lateClose))
}
