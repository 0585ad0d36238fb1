package resync

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// writeExport writes an export of files of items, and returns its folder.
func writeExport(t *testing.T, at time.Time, files [][]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "AWSDynamoDB", "1")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o750); err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) string {
		m := md5.Sum(b)
		return base64.StdEncoding.EncodeToString(m[:])
	}
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var list bytes.Buffer
	items := 0
	for i, keys := range files {
		var data bytes.Buffer
		z := gzip.NewWriter(&data)
		for _, key := range keys {
			fmt.Fprintf(z, `{"Item":{"pk":{"S":"%s"},"v":{"N":"1"}}}`+"\n", key)
		}
		_ = z.Close()
		name := fmt.Sprintf("data/%03d.json.gz", i)
		write(name, data.Bytes())
		fmt.Fprintf(&list, `{"itemCount":%d,"md5Checksum":%q,"etag":"x","dataFileS3Key":"AWSDynamoDB/1/%s"}`+"\n",
			len(keys), sum(data.Bytes()), name)
		items += len(keys)
	}
	summary, _ := json.Marshal(map[string]any{
		"tableArn": "arn:aws:dynamodb:eu-west-1:1:table/Orders", "tableId": "id", "exportTime": at.UTC().Format(time.RFC3339),
		"manifestFilesS3Key": "AWSDynamoDB/1/manifest-files.json", "itemCount": items, "outputFormat": "DYNAMODB_JSON",
		"exportType": export.Full, "billedSizeBytes": 9,
	})
	for name, text := range map[string][]byte{"manifest-summary": summary, "manifest-files": list.Bytes()} {
		write(name+".json", text)
		write(name+".md5", []byte(sum(text)))
	}
	return dir
}

// delegated is a table whose copy of an export workers make, with their order and marks.
type delegated struct {
	t     *testing.T
	files [][]string
	at    time.Time // that the export shows
	url   string
	unfit transform.Unfit

	mu      sync.Mutex // covers what follows
	order   *delegation.Order
	swaps   []*delegation.Order
	beats   []delegation.Beat
	marks   map[int]*delegation.FileMark
	noted   int  // how often the log was
	away    bool // Bigtable does not answer
	bodies  []any
	appends []time.Time
	written map[string]change.Version // by the owner
	refuse  map[string]bool
	fails   string        // the item that the owner cannot write
	slow    time.Duration // of each write of the owner
	gaps    change.Millis
	state   *checkpoint.CopyState
	removed bool
	floor   change.Version
}

func newDelegated(t *testing.T, files [][]string) *delegated {
	d := &delegated{
		t: t, files: files, at: time.Now().Truncate(time.Second), marks: map[int]*delegation.FileMark{},
		written: map[string]change.Version{}, refuse: map[string]bool{},
	}
	d.url = writeExport(t, d.at, files)
	d.state = &checkpoint.CopyState{
		Copy: checkpoint.Copy{
			ID: "backfill-1", Why: checkpoint.CopyBackfill, From: checkpoint.FromExport, By: checkpoint.ByWorkers,
			Export: d.url, Parts: len(files),
		},
		Delegated: 77, Marks: map[int]checkpoint.CopyMark{},
	}
	return d
}

var errAway = errors.New("no answer of Bigtable")

func (d *delegated) LoadOrder(context.Context, string, string) (*delegation.Seen, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return nil, errAway
	}
	return &delegation.Seen{Order: d.order, Life: 1}, nil
}

func (d *delegated) SwapOrder(_ context.Context, _, _ string, old, next *delegation.Order) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.order != old {
		return false, nil
	}
	if next.Open() && d.noted < 3 {
		d.t.Error("the order is opened before the log is noted")
	}
	d.order, d.swaps = next, append(d.swaps, next)
	return true, nil
}

func (d *delegated) StoreBeat(_ context.Context, _, _ string, b delegation.Beat, _ func() error) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats = append(d.beats, b)
	return d.order != nil, nil
}

func (d *delegated) LoadFileMarks(
	_ context.Context, o *delegation.Order, row int, wanted func(int) bool, f func(int, *delegation.FileMark) error,
) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for file, m := range d.marks {
		if m.Of(o.ID) && delegation.RowOf(file) == row && wanted(file) {
			if err := f(file, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *delegated) RemoveFileMarks(context.Context, *delegation.Order) error {
	d.removed = true
	return nil
}

// note fails at first: nothing is opened before the log is noted.
func (d *delegated) note(_ context.Context, seq uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted++; d.noted < 3 {
		return errAway
	}
	if seq != 77 || d.order.Open() {
		d.t.Errorf("entry %d is noted, with order %v", seq, d.order)
	}
	return nil
}

// Resync is a write of the owner, in the lane of the item.
func (d *delegated) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	_ = failure.Pause(ctx, d.slow)
	d.mu.Lock()
	defer d.mu.Unlock()
	pk := strings.Trim(strings.TrimPrefix(string(r.Keys), `{"pk":{"S":`), `"}`)
	if pk == d.fails {
		return apply.ResyncOutcome{}, errAway
	}
	if d.refuse[pk] {
		return apply.ResyncOutcome{Refused: &outcome.Outcome{Code: "x"}, Lettered: true}, ctx.Err()
	}
	d.written[pk] = r.Version
	return apply.ResyncOutcome{Written: 1}, ctx.Err()
}

func (*delegated) Backlog() (int, time.Duration) { return 0, 0 }

// append folds what matters here of an entry, as the log does.
func (d *delegated) append(ctx context.Context, body any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies, d.appends = append(d.bodies, body), append(d.appends, time.Now())
	m, ok := body.(*checkpoint.CopyMarks)
	if !ok {
		return ctx.Err()
	}
	for i, mark := range m.Parts {
		for _, key := range d.files[i] { // Rule 1
			_, ours := d.written[key]
			if theirs := d.marks[i].Of("backfill-1.77"); mark.Done && !ours && !theirs && !d.refuse[key] {
				d.t.Errorf("the mark of file %d passes %s, which is not durable", i, key)
			}
		}
		d.state.Marks[i] = mark
	}
	if m.Paused != "" {
		d.state.PausedWhy = m.Paused
	}
	if m.Closed {
		d.state.Delegated = 0
	}
	return ctx.Err()
}

func (d *delegated) options() Options {
	o := newTable(d.t, 0, 0).options()
	o.Append, o.Writer, o.Number, o.Pipeline, o.Floor = d.append, d, 1, "shop", d.floor
	o.Facts = func() *life.Facts {
		d.mu.Lock()
		defer d.mu.Unlock()
		return &life.Facts{Applied: now(), RowFacts: protocol.RowFacts{GapsUntil: d.gaps}}
	}
	o.Exports = Exports{
		Open: func(ctx context.Context, url string) (*export.Export, error) {
			return export.Open(ctx, url, export.Want{})
		},
	}
	o.Workers = Workers{Store: d, Unfit: d.unfit, Note: d.note, Plan: func() (*delegation.Order, error) {
		return &delegation.Order{Target: "orders"}, nil
	}}
	return o
}

// run copies until the copy ends, and returns when that was.
func (d *delegated) run(beside func()) time.Time {
	d.t.Helper()
	c := New(d.options(), d.state)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(d.t.Context()) }()
	if beside != nil {
		beside()
	}
	if err := <-ended; err != nil {
		d.t.Fatal(err)
	}
	return time.Now()
}

// mark stores the mark of a file as a worker does.
func (d *delegated) mark(file int, order string, handedBack ...int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks[file] = &delegation.FileMark{Order: order, Items: int64(len(d.files[file])), HandedBack: handedBack}
}

// isOpen waits until the order is open.
func (d *delegated) isOpen() {
	for {
		d.mu.Lock()
		open := d.order.Open()
		d.mu.Unlock()
		if open {
			return
		}
		_ = failure.Pause(d.t.Context(), time.Second)
	}
}

// closed returns when the log got the entry that closes the order, and fails unless the order was
// stored as closed for a reason, two minutes before.
func (d *delegated) closed(reason delegation.CloseReason) {
	d.t.Helper()
	last := d.swaps[len(d.swaps)-1]
	if last.Open() || last.Reason != reason || last.ID != "backfill-1.77" {
		d.t.Errorf("the last order is %+v, want it closed for %s", last, reason)
	}
	for i, body := range d.bodies {
		if m, ok := body.(*checkpoint.CopyMarks); ok && m.Closed {
			if wait := change.MillisOf(d.appends[i]) - last.Closed; wait < 120_000 {
				d.t.Errorf("it is closed in the log %d ms after it was closed for its workers", wait)
			}
			return
		}
	}
	d.t.Errorf("it is not closed in the log: %+v", d.bodies)
}

// TestOwnerFollowsWorkersByTheirMarks: it opens the order behind the proof, beats, writes what they
// hand back, and ends the copy once their order is closed. Marks of another order count for
// nothing.
func TestOwnerFollowsWorkersByTheirMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a", "b", "c"}, {}, {"d", "e"}})
		d.refuse["c"] = true
		began := time.Now()
		d.mark(2, "backfill-1.5")
		d.run(func() {
			d.isOpen()
			if wait := change.MillisOf(time.Now()) - change.MillisOf(d.at); wait < answerMargin {
				t.Errorf("the order is open %d ms after the moment of the export", wait)
			}
			_ = failure.Pause(t.Context(), 5*time.Minute)
			d.mu.Lock()
			if n := len(d.beats); n < 9 || n > 21 || d.beats[n-1].Order != "backfill-1.77" {
				t.Errorf("%d beats in five minutes: %+v", n, d.beats)
			}
			if len(d.state.Marks) > 0 {
				t.Errorf("marks without a mark of the order: %+v", d.state.Marks)
			}
			d.away = true // for a while
			d.mu.Unlock()
			d.mark(0, "backfill-1.77", 2, 3)
			d.mark(1, "backfill-1.77")
			_ = failure.Pause(t.Context(), 5*time.Minute)
			d.mu.Lock()
			d.away = false
			d.mu.Unlock()
			d.mark(2, "backfill-1.77")
		})
		d.closed(delegation.CloseDone)
		o := d.swaps[0]
		if o.Version != change.Version(change.MillisOf(d.at))-apply.ResyncMargin || !o.First || o.Export.Files != 3 ||
			o.Export.Digest == "" || o.Life != 1 || o.Table != "Orders" || o.Pipeline != "shop" || o.Target != "orders" {
			t.Errorf("%+v", o)
		}
		if d.written["b"] != o.Version || len(d.written) != 1 {
			t.Errorf("the owner wrote %v", d.written)
		}
		m := d.state.Marks[0]
		if !m.Done || m.Items != 3 || m.Letters != 1 || !d.state.Marks[1].Done || !d.state.Marks[2].Done {
			t.Errorf("%+v", d.state.Marks)
		}
		if !d.removed || time.Since(began) > time.Hour {
			t.Errorf("marks removed: %t, after %s", d.removed, time.Since(began))
		}
	})
}

// TestOwnerCopiesWhatWorkersLeave once their order is closed: also what they marked last counts.
func TestOwnerCopiesWhatWorkersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}, {"b"}, {"c"}})
		d.state.Marks[0] = checkpoint.CopyMark{Items: 1, Done: true}
		d.written["a"], d.state.TakenBack = 1, true
		d.run(func() {
			_ = failure.Pause(t.Context(), time.Minute)
			d.mark(1, "backfill-1.77")
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.written) != 1 {
				t.Error("the owner copies beside workers")
			}
		})
		d.closed(delegation.CloseTakeback)
		if _, ok := d.written["b"]; ok || d.written["c"] == 0 || len(d.state.Marks) != 3 {
			t.Errorf("the owner wrote %v, marks %+v", d.written, d.state.Marks)
		}
	})
}

// TestWorkersEndWhereTheOwnerEnds: each reason closes the order before anything else happens.
func TestWorkersEndWhereTheOwnerEnds(t *testing.T) {
	for name, x := range map[string]struct {
		edit   func(*delegated)
		beside func(*delegated)
		reason delegation.CloseReason
		paused bool
	}{
		"a gap": {beside: func(d *delegated) { d.gaps = now() }, reason: delegation.ClosePause, paused: true},
		"a gap before the order": {
			edit: func(d *delegated) { d.gaps = now() }, reason: delegation.ClosePause, paused: true,
		},
		"cancelled": {edit: func(d *delegated) { d.state.Cancels = 1 }, reason: delegation.CloseCancel},
		"paused":    {edit: func(d *delegated) { d.state.PausedWhy = "so" }, reason: delegation.ClosePause, paused: true},
		"closed by an owner before": {beside: func(d *delegated) {
			d.order = delegation.Closing(d.order, "backfill-1.77", 1, delegation.CloseTakeback, now())
			d.swaps = append(d.swaps, d.order)
		}, reason: delegation.CloseTakeback},
		"unfit": {edit: func(d *delegated) { d.unfit = transform.UnfitReads }, reason: delegation.CloseUnfit},
		"the row was deleted": {
			beside: func(d *delegated) { d.order = nil }, reason: delegation.CloseTakeback,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDelegated(t, [][]string{{"a"}, {"b"}})
				if x.edit != nil {
					x.edit(d)
				}
				d.run(func() {
					if x.beside != nil {
						d.isOpen()
						d.mu.Lock()
						x.beside(d)
						d.mu.Unlock()
					}
				})
				d.closed(x.reason)
				if (d.state.PausedWhy != "") != x.paused {
					t.Errorf("paused: %q", d.state.PausedWhy)
				}
				if written := len(d.written) > 0; written == (x.paused || x.reason == delegation.CloseCancel) {
					t.Errorf("the owner wrote %v", d.written)
				}
			})
		})
	}
}

// TestOwnerThatCannotUseWorkersTakesNoneOfTheirMarks: they had another mapping.
func TestOwnerThatCannotUseWorkersTakesNoneOfTheirMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}, {"b"}})
		d.unfit = transform.UnfitReads
		d.mark(0, "backfill-1.77")
		d.run(nil)
		d.closed(delegation.CloseUnfit)
		if len(d.written) != 2 {
			t.Errorf("the owner wrote %v", d.written)
		}
	})
}

// TestOrderOfALaterLifeIsAboveItsFloor, and of files that are durable it names none.
func TestOrderOfALaterLifeIsAboveItsFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}, {"b"}, {"c"}})
		d.floor = change.Version(now()) + 7000
		for i, key := range []string{"a", "b"} {
			d.state.Marks[i], d.written[key] = checkpoint.CopyMark{Items: 1, Done: true}, 1
		}
		d.run(func() {
			d.isOpen()
			d.mark(2, "backfill-1.77")
		})
		o := d.swaps[0]
		if o.Version != d.floor+1 || o.First || !slices.Equal(o.Copied, []delegation.Range{{First: 0, Last: 1}}) {
			t.Errorf("floor %d, order %+v", d.floor, o)
		}
		d.closed(delegation.CloseDone)
	})
}

// TestOrderOfALostLogIsClosedFirst: its workers are outwaited before another order is opened.
func TestOrderOfALostLogIsClosedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}})
		d.order = &delegation.Order{ID: "backfill-1.5", Life: 1}
		d.run(func() {
			for n := 0; n < 2; _ = failure.Pause(t.Context(), time.Second) {
				d.mu.Lock()
				n = len(d.swaps)
				d.mu.Unlock()
			}
			d.mark(0, "backfill-1.77")
		})
		other, own := d.swaps[0], d.swaps[1]
		if other.ID != "backfill-1.5" || other.Open() || own.Opened-other.Closed < 120_000 {
			t.Errorf("%+v, then %+v", other, own)
		}
		d.closed(delegation.CloseDone)
	})
}

// TestPausedWorkersWait: an operator's pause closes nothing, and takes a mark that is stored.
func TestPausedWorkersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}})
		d.state.Paused = true
		d.run(func() {
			d.isOpen()
			_ = failure.Pause(t.Context(), time.Minute)
			d.mu.Lock()
			if paused := slices.ContainsFunc(d.beats, func(b delegation.Beat) bool { return !b.Paused }); paused {
				t.Errorf("beats: %+v", d.beats)
			}
			d.mu.Unlock()
			d.mark(0, "backfill-1.77")
		})
		d.closed(delegation.CloseDone)
	})
}

// TestOpeningThatIsUnderWayLosesToAClosing: an owner that was replaced may have sent it.
func TestOpeningThatIsUnderWayLosesToAClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}})
		d.state.TakenBack = true
		before := d.order
		d.run(nil)
		if done, err := d.SwapOrder(t.Context(), "", "", before, &delegation.Order{ID: "backfill-1.77"}); done || err != nil {
			t.Errorf("the order is open again: %t, %v", done, err)
		}
	})
}

// TestOwnerBeatsWhileItWritesWhatIsHandedBack: workers of an order without a beat write nothing,
// and end after ten minutes. The owner also ends the order meanwhile, and stores what it has taken
// over.
func TestOwnerBeatsWhileItWritesWhatIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := make([][]string, 101)
		for i := range files {
			files[i] = []string{fmt.Sprint("a", i)}
		}
		d := newDelegated(t, files)
		d.slow = 30 * time.Second
		var gap, stored time.Time
		ended := d.run(func() {
			d.isOpen()
			for i := range files[:100] {
				d.mark(i, "backfill-1.77", 1)
			}
			_ = failure.Pause(t.Context(), 20*time.Minute)
			d.mu.Lock()
			defer d.mu.Unlock()
			gap, d.gaps = time.Now(), now()
			if len(d.appends) > 0 {
				stored = d.appends[0]
			}
		})
		last := d.beats[0].Date
		for _, b := range append(d.beats, delegation.Beat{Date: change.MillisOf(gap)}) {
			if silent := time.Duration(b.Date-last) * time.Millisecond; silent >= delegation.LongestSilence {
				t.Errorf("no beat for %s", silent)
			}
			last = b.Date
		}
		if stored.IsZero() {
			t.Error("after 20 minutes no mark is stored")
		}
		if took := ended.Sub(gap); took > 10*time.Minute {
			t.Errorf("the order is closed %s after a gap was found", took)
		}
		d.closed(delegation.ClosePause)
	})
}

// TestItemThatCannotBeWrittenKeepsNoOtherFileFromItsMark, in its row of marks and in the next one.
func TestItemThatCannotBeWrittenKeepsNoOtherFileFromItsMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := make([][]string, delegation.FilesPerRow+2)
		files[0], files[1], files[delegation.FilesPerRow] = []string{"bad", "b"}, []string{"c"}, []string{"d"}
		d := newDelegated(t, files)
		d.fails = "bad"
		d.run(func() {
			d.isOpen()
			d.mark(0, "backfill-1.77", 1)
			d.mark(1, "backfill-1.77")
			d.mark(delegation.FilesPerRow, "backfill-1.77")
			_ = failure.Pause(t.Context(), 10*time.Minute)
			d.mu.Lock()
			defer d.mu.Unlock()
			if m := d.state.Marks; m[0].Done || !m[1].Done || !m[delegation.FilesPerRow].Done {
				t.Errorf("marks in the log: %+v", m)
			}
			d.fails, d.gaps = "", now()
		})
	})
}

// TestCancelledCopyWritesNothingThatIsHandedBack: it takes over what is durable, and ends.
func TestCancelledCopyWritesNothingThatIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelegated(t, [][]string{{"a"}, {"b"}, {"c"}})
		d.state.Cancels = 1
		d.mark(0, "backfill-1.77", 1)
		d.mark(1, "backfill-1.77")
		d.run(nil)
		d.closed(delegation.CloseCancel)
		if m := d.state.Marks; len(d.written) > 0 || m[0].Done || !m[1].Done || m[2].Done {
			t.Errorf("the owner wrote %v, marks %+v", d.written, m)
		}
	})
}

// TestMarkThatItsFileDoesNotFitIsNoProof: where a mark names lines that the file does not have, and
// where another export is in the place of the order's, nothing counts as copied. The owner copies
// the files when the order is taken back.
func TestMarkThatItsFileDoesNotFitIsNoProof(t *testing.T) {
	for name, x := range map[string]struct {
		digest string // of an order that an owner before has opened
		lines  []int64
	}{"lines that do not exist": {lines: []int64{2, 3}}, "another export": {"x", []int64{2}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDelegated(t, [][]string{{"a", "b"}})
				if x.digest != "" {
					d.order = &delegation.Order{ID: "backfill-1.77", Life: 1, Export: delegation.Export{Files: 1, Digest: x.digest}}
				}
				d.run(func() {
					d.isOpen()
					d.mark(0, "backfill-1.77", x.lines...)
					_ = failure.Pause(t.Context(), time.Minute)
					d.mu.Lock()
					defer d.mu.Unlock()
					if len(d.state.Marks) > 0 {
						t.Errorf("marks in the log: %+v", d.state.Marks)
					}
					d.order = delegation.Closing(d.order, "backfill-1.77", 1, delegation.CloseTakeback, now())
					d.swaps = append(d.swaps, d.order)
				})
				if len(d.written) != 2 || !d.state.Marks[0].Done || d.state.Marks[0].Items != 2 {
					t.Errorf("the owner wrote %v, marks %+v", d.written, d.state.Marks)
				}
			})
		})
	}
}
