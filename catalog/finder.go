package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// Daemon is what replicates the tables.
type Daemon interface {
	// Add begins to replicate a table of a configuration.
	Add(ctx context.Context, cfg *config.Config, t config.Table) error
	// Remove drains a table and drops it; its stored state stays.
	Remove(ctx context.Context, source string)
	// Note sets what is to be reported about sources: see pipeline.Note.
	Note(notes map[string]status.Reason)
	// ReadToEnd reports whether everything of a table's stream is applied that there will ever be.
	ReadToEnd(source string) bool
}

const (
	firstTimeout = 10 * time.Second // for each listing before a daemon begins; later ones have no limit
	patience     = 3                // listings in a row that may fail before the pipeline is not ready
)

// Finder looks for the tables of a running daemon. Only FirstStart may be called beside the others.
type Finder struct {
	cfg    *config.Config // of the file
	lister *lister
	within time.Duration // for each listing before a daemon begins
	queue  *queue.Queue
	log    *zap.Logger

	known   *config.Config           // with the tables that were found last
	told    map[string]status.Reason // notes by source, as they were logged
	ended   map[string]bool          // vanished tables that were drained
	missed  map[string]bool          // known tables that the last look lacked
	refused map[string]error         // tables that the daemon could not add
	failed  int                      // listings in a row
	err     error                    // of the last one

	mu    sync.Mutex // covers first
	first change.Millis
}

// New returns a finder for a configuration with selections.
func New(cfg *config.Config, src *source.Source, q *queue.Queue, log *zap.Logger) *Finder {
	return &Finder{
		cfg: cfg, known: cfg, lister: newLister(src), within: firstTimeout, queue: q, log: log,
		told: map[string]status.Reason{}, ended: map[string]bool{},
	}
}

// First looks for the tables that a daemon begins with. Without DynamoDB these are the ones that
// have a log.
//
// Where the queue cannot list all logs, those that it lists begin: a log without a leader must not
// keep the tables of others from going on. Rule 13: the other tables wait for a whole listing,
// because the log of another table may show that the target of a new one is taken.
func (f *Finder) First(ctx context.Context) (*config.Config, error) {
	asking, done := context.WithTimeout(ctx, f.within)
	logged, lacks := f.queue.Tables(asking)
	done()
	if lacks != nil && !errors.Is(lacks, queue.ErrListing) {
		return nil, lacks
	}
	if lacks != nil {
		f.failed, f.err = patience, lacks
		f.log.Warn("not all logs can be listed: the tables of those that are begin", zap.Error(lacks))
	}
	once, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	listed, err := f.lister.list(once, f.cfg, logged)
	if err != nil {
		if once.Err() != nil || errors.Is(err, errPaced) { // many tags are asked for: no service fails
			err = fmt.Errorf("not within %s; the tables that have a log begin, and it is tried again at once", f.within)
		}
		f.failed, f.err = patience, err
		f.log.Warn("tables cannot be listed: those that have a log begin", zap.Error(err), zap.String("hint",
			source.Hint(err)))
		listed = unlisted(logged)
	}
	if lacks != nil {
		listed = slices.DeleteFunc(listed, func(l config.Listed) bool { return !l.Logged })
	}
	f.known, _ = f.cfg.Expand(listed)
	for _, t := range f.known.Tables {
		if t.Found {
			f.logFound(&t)
		}
	}
	return f.known, ctx.Err()
}

// FirstStart returns when the pipeline was first started, by the service's clock; 0: it was not
// yet.
func (f *Finder) FirstStart(ctx context.Context) (change.Millis, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first > 0 {
		return f.first, nil
	}
	var err error
	f.first, err = firstStart(ctx, f.queue)
	return f.first, err
}

// Run looks for tables until ctx ends. It returns nil then.
func (f *Finder) Run(ctx context.Context, d Daemon) error {
	f.tell(d)
	pause := time.Duration(f.cfg.Protocol.Find)
	if f.err != nil { // the first listing is to be made up for
		pause = time.Second
	}
	for ; failure.Pause(ctx, pause) == nil; pause = time.Duration(f.cfg.Protocol.Find) {
		if found, err := f.look(ctx); err == nil {
			f.failed, f.err = 0, nil
			f.follow(ctx, d, found)
		} else if ctx.Err() == nil {
			if f.failed++; f.err == nil {
				f.log.Warn("tables cannot be listed: those that are known go on", zap.Error(err),
					zap.String("hint", source.Hint(err)))
			}
			f.err = err
		}
		f.tell(d)
	}
	return nil
}

// look returns the configuration with the tables that there are now.
func (f *Finder) look(ctx context.Context) (*config.Config, error) {
	logged, err := f.queue.Tables(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := f.lister.list(ctx, f.cfg, logged)
	if err != nil {
		return nil, err
	}
	for by, i := bySource(f.known), 0; i < len(listed); i++ {
		listed[i].By = by[listed[i].Name].Path
	}
	found, _ := f.cfg.Expand(listed)
	return found, nil
}

// follow begins the tables that are new, and ends tables without any record: they were retired, or
// more than one selection chooses them now. A vanished table with its stream read to the end begins
// again and waits without owning its log, so that it can be retired. A table that the daemon cannot
// add is new again at the next look: its target may still belong to a table that is missed for the
// first time.
func (f *Finder) follow(ctx context.Context, d Daemon, found *config.Config) {
	f.keepMissed(found)
	f.refused = map[string]error{}
	before, now := bySource(f.known), bySource(found)
	for source := range before {
		t, still := now[source]
		switch {
		case !still:
			f.log.Info("table is no longer replicated: no selection chooses it, or its log is gone", zap.String("table", source))
			d.Remove(ctx, source)
			delete(f.ended, source)
		case t.Gone != config.GoneVanished:
			delete(f.ended, source)
		case !f.ended[source] && d.ReadToEnd(source):
			f.ended[source] = true
			d.Remove(ctx, source)
			f.add(ctx, d, found, t)
		}
	}
	for _, t := range found.Tables {
		if _, known := before[t.Source]; t.Found && !known {
			f.logFound(&t)
			f.add(ctx, d, found, t)
		}
	}
	added := *found // a copy, because the daemon reads found
	added.Tables = slices.DeleteFunc(slices.Clone(found.Tables), func(t config.Table) bool {
		return f.refused[t.Source] != nil
	})
	f.known = &added
}

// keepMissed adds to what was found the known tables that it lacks for the first time.
//
// Rule 13: the replication of a table does not end because one look at the logs and the tables
// lacks it.
func (f *Finder) keepMissed(found *config.Config) {
	now, missed := bySource(found), map[string]bool{}
	for _, t := range f.known.Tables {
		if _, still := now[t.Source]; t.Found && !still && !f.missed[t.Source] {
			missed[t.Source] = true
			found.Tables = append(found.Tables, t)
		}
	}
	f.missed = missed
}

func (f *Finder) logFound(t *config.Table) {
	f.log.Info("table found", zap.String("table", t.Source), zap.String("target", t.Target), zap.String("by", t.Path))
}

func (f *Finder) add(ctx context.Context, d Daemon, cfg *config.Config, t config.Table) {
	if err := d.Add(ctx, cfg, t); err != nil && ctx.Err() == nil {
		f.refused[t.Source] = err
	}
}

// tell reports the notes, and logs the new ones.
func (f *Finder) tell(d Daemon) {
	notes := map[string]status.Reason{}
	for i := range f.known.Tables {
		if reason, ok := clients.GoneReason(&f.known.Tables[i]); ok {
			notes[f.known.Tables[i].Source] = reason
		}
	}
	for _, u := range f.known.Unfit {
		notes[u.Source] = status.Reason{Code: status.WhyNotReplicable, Text: u.Why}
	}
	for source, err := range f.refused {
		notes[source] = status.Reason{Code: status.WhyNotReplicable, Text: "it is tried again: " + err.Error()}
	}
	if f.failed >= patience {
		what := "DynamoDB"
		if errors.Is(f.err, queue.ErrListing) {
			what = "the logs"
		}
		notes["tables"] = status.Reason{Code: status.WhyNote,
			Text: what + " cannot be listed, so that new tables are not found: " + f.err.Error()}
	} else if len(f.known.Tables) == 0 {
		notes["tables"] = status.Reason{Code: status.WhyNote, Text: "no selection chooses a table yet"}
	}
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		if f.told[key] != notes[key] {
			f.log.Warn("about the tables of selections", zap.String("table", key), zap.String("reason", notes[key].Text))
		}
	}
	f.told = notes
	d.Note(notes)
}

// bySource returns the tables that selections have chosen.
func bySource(cfg *config.Config) map[string]config.Table {
	all := map[string]config.Table{}
	for _, t := range cfg.Tables {
		if t.Found {
			all[t.Source] = t
		}
	}
	return all
}
