package settings

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

// Watch looks at the settings that the tables of a process rely on. It is safe for concurrent use.
type Watch struct {
	o Options

	mu    sync.Mutex       // covers what follows
	looks map[string]*look // by what is looked at
	said  map[string]bool  // codes of which a line is in the process's log
}

// Options say what is looked at.
type Options struct {
	Bigtable *bigtable.Client // nil: there is none
	Objects  bucket.Bucket    // of the archive; nil: there is none
	URL      string           // of that bucket
	Logger   *zap.Logger
}

// New returns a watch that has looked at nothing.
func New(o Options) *Watch { return &Watch{o: o, looks: map[string]*look{}, said: map[string]bool{}} }

// look is the last look at something.
type look struct {
	mu       sync.Mutex
	began    time.Time
	answered bool              // by the last look
	found    protocol.Premises // at the last look that was answered
}

// askTime is the time limit of a look: where a service does not answer, nothing is known, and
// nothing waits for it.
const askTime = 10 * time.Second

// Table is what a table relies on.
type Table struct {
	Source   string
	Target   string // "": none
	Families []transform.Family
	Archived bool // it has an archive
}

// Look returns what is not as the table relies on it, by looks that began at a time or later. What
// several tables rely on is asked for once. Where a service does not answer, the last answer
// stands, and answered is false.
//
// Rule 15: the settings of outside systems are looked at while a table is written.
func (w *Watch) Look(ctx context.Context, t Table, since time.Time) (found protocol.Premises, answered bool) {
	answered = true
	at := func(what string, ask func(context.Context) (protocol.Premises, error)) {
		all, ok := w.look(ctx, what, since, ask)
		found, answered = append(found, all...), answered && ok
	}
	if t.Target != "" && w.o.Bigtable != nil {
		tables := tableschema.Tables([]tableschema.Table{{Name: t.Target, Families: t.Families}}, w.o.Bigtable.Tombstones())
		for _, table := range tables {
			what := "table " + t.Target + " of " + t.Source
			if table.Name == tableschema.StateTable {
				what = table.Name
			}
			at(what, func(ctx context.Context) (protocol.Premises, error) {
				return Differences(w.o.Bigtable.Diff(ctx, []tableschema.Table{table}))
			})
		}
		at("app profile", func(ctx context.Context) (protocol.Premises, error) {
			p, err := w.o.Bigtable.Profile(ctx)
			return Profile(p, w.o.Bigtable.Instance(), err)
		})
		at("app profile of copies", func(ctx context.Context) (protocol.Premises, error) {
			return ReadCopyProfile(ctx, w.o.Bigtable)
		})
	}
	if t.Archived && w.o.Objects != nil {
		at("lifecycle", func(ctx context.Context) (protocol.Premises, error) {
			rules, err := bucket.Lifecycle(ctx, w.o.Objects)
			return Lifecycle(w.o.URL, rules, err)
		})
	}
	return found, answered
}

// look returns what was found at something by a look that began at a time or later.
func (w *Watch) look(
	ctx context.Context, what string, since time.Time, ask func(context.Context) (protocol.Premises, error),
) (protocol.Premises, bool) {
	w.mu.Lock()
	l := w.looks[what]
	if l == nil {
		l = &look{}
		w.looks[what] = l
	}
	w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began.IsZero() && !l.began.Before(since) {
		return l.found, l.answered
	}
	began := time.Now()
	asking, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("no answer within %v", askTime))
	defer cancel()
	found, err := ask(asking)
	l.answered = err == nil
	if ctx.Err() != nil {
		return l.found, false
	}
	if l.began = began; err != nil {
		w.o.Logger.Warn("settings not read, trying again", zap.String("of", what), zap.Error(err))
		return l.found, false
	}
	w.say(found)
	// Rule 13: that a setting may not be read any more does not take back what was read of it.
	for _, p := range found {
		if p.Unread != "" {
			found = append(found, l.found.Broken()...)
			break
		}
	}
	l.found = found
	return l.found, true
}

// say logs what cannot be read, and what is only worth a line, once for a process.
func (w *Watch) say(found protocol.Premises) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range found {
		p := &found[i]
		if p.Unread == "" && !p.Notice || w.said[p.Code] {
			continue
		}
		w.said[p.Code] = true
		w.o.Logger.Warn("a setting that the replicator relies on", zap.String("is", p.Text()))
	}
}
