package audit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/verify"
)

// Stale is why the kept comparison, with what has changed since, does not show that everything is
// equal.
type Stale struct{ Why string }

func (e *Stale) Error() string { return e.Why }

// Changed are the items that have changed since the kept comparison, or since a time.
type Changed struct {
	follower
	Result *Saved // nil: since a time
	Began  time.Time

	dir, folder string
	marks       []checkpoint.Mark // where the next comparison begins if this one finds everything equal
}

// SinceLast reads what has changed since the kept comparison of a directory. The error is a *Stale
// where that does not show everything that may differ: Result is set all the same where it was
// read.
func SinceLast(ctx context.Context, s *pair.Pair, pipeline, dir string) (*Changed, error) {
	c := &Changed{dir: dir, Began: s.Now().Time().UTC()}
	result, err := LoadSaved(dir)
	if errors.Is(err, ErrNoneSaved) {
		return c, &Stale{err.Error()}
	}
	if err != nil {
		return c, err
	}
	c.Result, c.folder = result, filepath.Join(dir, result.Folder)
	now, marks, err := tablesNow(ctx, s, pipeline)
	if err != nil {
		return c, err
	}
	if why := cmp.Or(c.Result.differs(s, pipeline, now), c.Result.leaks()); why != "" {
		return c, &Stale{why}
	}
	c.marks = marks
	if why := alters(s); why != "" {
		return c, &Stale{why}
	}
	kept := make([]checkpoint.Mark, len(now))
	for i := range kept {
		kept[i] = c.Result.Tables[i].Mark
	}
	k, err := openKeys(c.folder, kept)
	if err != nil {
		return c, err
	}
	if why, err := c.lost(k); why != "" || err != nil {
		return c, cmp.Or(err, error(&Stale{why}))
	}
	c.follower = follower{pair: s, keys: k, result: result}
	return c, c.read(ctx)
}

// lost returns why not all is there any more that was not equal, as after a power failure; "" where
// it is. Otherwise it would pass for equal.
func (c *Changed) lost(k *keys) (why string, err error) {
	const lost = "what the last full one found to differ is not all kept"
	if c.Result.OpenItems > 0 && len(k.parts[partOpen].Part().Files) == 0 {
		return lost, nil
	}
	file, err := os.Open(filepath.Join(c.folder, cellsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return lost, nil
	}
	if err != nil {
		return "", fmt.Errorf("read kept cells: %w", err)
	}
	defer file.Close()
	cells, lines := int64(0), bufio.NewReader(file)
	for {
		b, err := lines.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && cells < c.Result.OpenCells:
			return lost, nil
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read kept cells: %w", err)
		case b == '\n':
			cells++
		}
	}
}

// SinceTime reads what has changed since a time of the service's clock.
func SinceTime(ctx context.Context, s *pair.Pair, dir string, since change.Millis) (*Changed, error) {
	c := &Changed{dir: dir, Began: s.Now().Time().UTC()}
	if why := alters(s); why != "" {
		return c, &Stale{why}
	}
	logs, err := s.Running(ctx)
	if err != nil {
		return c, err
	}
	for _, l := range logs {
		now, err := s.Ask(ctx) // a time before a pause of this machine would leave out as much of the log
		if err != nil {
			return c, err
		}
		from, err := queue.EntrySinceCreated(ctx, l.Log, since, now)
		if errors.Is(err, queue.ErrTrimmed) {
			return c, &Stale{fmt.Sprintf("the log of %s does not reach back: %s", l.Table, err)}
		}
		if err != nil {
			return c, err
		}
		c.from = append(c.from, from)
	}
	name, err := newFolder(dir)
	if err != nil {
		return c, err
	}
	c.folder = filepath.Join(dir, name)
	k, err := openKeys(c.folder, make([]checkpoint.Mark, len(logs)))
	if err != nil {
		return c, err
	}
	c.follower = follower{pair: s, keys: k, from: c.from}
	return c, c.read(ctx)
}

// leaks returns why changes since the comparison may be missing from a log although no entry
// records a loss; "" if none may: while a loss waits to be accepted, its shard is not read.
func (s *Saved) leaks() string {
	for i := range s.Tables {
		if t := &s.Tables[i]; t.OpenGaps > 0 {
			return fmt.Sprintf("the last full one began while a loss of changes of %s waited for `replicator resume`",
				t.Result.Source)
		}
	}
	return ""
}

// alters returns why a change may alter what the target has of other items than its own; "" where
// none does.
func alters(s *pair.Pair) string {
	for _, t := range s.Tables {
		switch {
		case t.Program.Wipes() != nil:
			return fmt.Sprintf("the mapping of %s has `on_remove: row`: a removal deletes cells of other items, which the "+
				"log does not name", t.Source)
		case t.Program.SharesCells():
			return fmt.Sprintf("the mapping of %s lets items share cells: a change alters what is stored of other items, "+
				"which the log does not name", t.Source)
		}
	}
	return ""
}

func (c *Changed) read(ctx context.Context) error {
	if err := c.follow(ctx); err != nil {
		return err
	}
	if c.keys.Broken != "" {
		return &Stale{c.keys.Broken}
	}
	return nil
}

// Items calls f with the items that were not equal, and with those that have changed since, at most
// n at a time.
func (c *Changed) Items(n int, f func([]verify.Candidate) error) error { return c.keys.each(n, f) }

// EachCell calls f with each cell without a known owner that the kept comparison found.
func (c *Changed) EachCell(f func(*verify.Open) error) error {
	if c.Result == nil {
		return nil
	}
	file, err := os.Open(filepath.Join(c.folder, cellsFile))
	if err != nil {
		return fmt.Errorf("read kept cells: %w", err)
	}
	defer file.Close()
	for d := json.NewDecoder(file); ; {
		var o verify.Open
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read kept cells: %w", err)
		}
		if err := f(&o); err != nil {
			return err
		}
	}
}

// Requested returns why requests of commands make the kept comparison useless for a cutover; ""
// where none was made.
func (c *Changed) Requested(ctx context.Context) (string, error) {
	logs, err := c.pair.Running(ctx)
	if err != nil {
		return "", err
	}
	for i, l := range logs {
		now, err := requestsOf(ctx, l)
		if err != nil {
			return "", err
		}
		if old := c.Result.Tables[i].Requests; old.Last != now.Last || !old.Created.Equal(now.Created) {
			return fmt.Sprintf("the last full one began before the end of a repair of %s, or of a retry of its dead letters",
				l.Table), nil
		}
	}
	return "", nil
}

// Advance keeps that everything was equal, so that the next comparison begins where this one did.
func (c *Changed) Advance(items int64) error {
	name, err := newFolder(c.dir)
	if err != nil {
		return err
	}
	k, err := openKeys(filepath.Join(c.dir, name), c.marks)
	if err != nil {
		return err
	}
	if err := k.save(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, name, cellsFile), nil, 0o600); err != nil {
		return fmt.Errorf("keep cells: %w", err)
	}
	next := *c.Result
	next.Folder, next.Verdict, next.OpenItems, next.OpenCells = name, "equal", 0, 0
	next.Since = &SavedSince{Began: c.Began, Ended: c.pair.Now().Time().UTC(), Items: items}
	return next.save(c.dir)
}

// Close removes what is not kept.
func (c *Changed) Close() error {
	if c.Result != nil || c.folder == "" {
		return nil
	}
	return os.RemoveAll(c.folder)
}
