package bigtable

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/transform"
)

func mustResync(t testing.TB, c *Client, w *transform.Write) Resynced {
	t.Helper()
	done, err := c.Resync(t.Context(), target, w, nil)
	if err != nil {
		t.Fatalf("resync at version %d: %v", w.Version, err)
	}
	return done
}

// TestResyncOfAHotItemIsSkippedAndSaysUntilWhen is attack 65 from the sink's side: nothing is ever
// written at or below the guard, and the caller hears the version that it must pass.
func TestResyncOfAHotItemIsSkippedAndSaysUntilWhen(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		w := share(transform.ClassD, "a", "new", 5, []string{"ghost"}, "x", "read")
		w.Rows = append(w.Rows, share(transform.ClassD, "a", "old", 5, []string{"x"}).Rows...)
		if diff := cmp.Diff(Resynced{Written: 2}, mustResync(t, c, w)); diff != "" {
			t.Errorf("first (-want +got):\n%s", diff)
		}
		mustApply(t, c, share(transform.ClassD, "a", "new", 2, nil, "ghost", "2"),
			share(transform.ClassD, "a", "new", 9, nil, "x", "9"),
			share(transform.ClassD, "a", "old", 7, []string{"x"}))
		if diff := cmp.Diff(Resynced{Skipped: 2, Hot: change.Version(at(9))}, mustResync(t, c, w)); diff != "" {
			t.Errorf("hot (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"new d:x": "9"}, plain(t, c)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.Version = change.Version(at(8))
		if diff := cmp.Diff(Resynced{Written: 1, Skipped: 1, Hot: change.Version(at(9))}, mustResync(t, c, w)); diff != "" {
			t.Errorf("half hot (-want +got):\n%s", diff)
		}
	})
}

// TestRowsOfACopiedItemAreCounted, and one that holds newer content is left as it is.
func TestRowsOfACopiedItemAreCounted(t *testing.T) {
	c, _ := rig(t)
	mustApply(t, c, share(transform.ClassK, "a", "newer", 9, nil, "x", "9"))
	w := share(transform.ClassK, "a", "new", 5, nil, "x", "5")
	w.Rows = append(w.Rows, share(transform.ClassK, "a", "newer", 5, nil, "x", "5").Rows...)
	written, skipped, err := c.CopyItem(t.Context(), target, w, nil)
	if err != nil || written != 1 || skipped != 1 {
		t.Errorf("%d written, %d skipped, %v", written, skipped, err)
	}
	if diff := cmp.Diff(map[string]string{"new d:x": "5", "newer d:x": "9"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stopped := errors.New("stopped")
	if _, _, err := c.CopyItem(t.Context(), target, w, func() error { return stopped }); !errors.Is(err, stopped) {
		t.Errorf("without the right to write: %v", err)
	}
}

func TestTombstoneMakesAnItemHot(t *testing.T) {
	c, _ := rig(t)
	mustApply(t, c, own("hats", 9))
	want := Resynced{Skipped: 1, Hot: change.Version(at(9))}
	if diff := cmp.Diff(want, mustResync(t, c, own("hats", 5, "x", "old"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Again = 1 // as after an attempt that was not answered
	if diff := cmp.Diff(want, mustResync(t, c, own("hats", 9, "x", "old"))); diff != "" {
		t.Errorf("at the same version (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{}, plain(t, c)); diff != "" {
		t.Errorf("the deleted item came back (-want +got):\n%s", diff)
	}
}

// TestPageOfAFrozenProcessIsNotSent is attack 59: the age of what was read is asked before every
// attempt.
func TestPageOfAFrozenProcessIsNotSent(t *testing.T) {
	c, f := rig(t)
	stale := errors.New("read 30 h ago")
	asked := 0
	fresh := func() error {
		if asked++; asked > 3 {
			return stale
		}
		return nil
	}
	f.fates(func(int) fate { return refuse })
	done, err := c.Resync(t.Context(), target, own("hats", 1, "x", "1"), fresh)
	var e *StaleError
	if !errors.Is(err, stale) || !errors.As(err, &e) || Classify(err) != failure.Canceled || done != (Resynced{}) {
		t.Errorf("resync: %+v, %v", done, err)
	}
	if asked != 4 || f.count() != 3 {
		t.Errorf("asked %d times for %d calls", asked, f.count())
	}
	f.fates(nil)
	two := own("hats", 2, "x", "2")
	two.Rows = append(two.Rows, own("caps", 2, "x", "2").Rows...)
	asked = 2 // the second row is too late
	if done, err = c.Resync(t.Context(), target, two, fresh); !errors.Is(err, stale) || done.Written != 1 {
		t.Errorf("between two rows: %+v, %v", done, err)
	}
	mustApply(t, c, own("belts", 1, "x", "1")) // a used request asks nobody
	if diff := cmp.Diff(map[string]string{"hats d:x": "2", "belts d:x": "1"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResyncPassesTheTombstoneGate(t *testing.T) {
	c, f := rig(t)
	old := own("hats", 0, "price", "1")
	old.Version = change.Version(present.Add(-6*24*time.Hour).UnixMilli() - 1)
	var rejected *RejectedError
	if _, err := c.Resync(t.Context(), target, old, nil); !errors.As(err, &rejected) || rejected.Code != CodeTooOld {
		t.Errorf("resync: %v, want it refused as too old", err)
	}
	if f.count() != 0 {
		t.Error("it was sent")
	}
}

// TestGuardInTheFutureIsReplaced is attack 75: with a guard two hours ahead, the item could not be
// written until then.
func TestGuardInTheFutureIsReplaced(t *testing.T) {
	const hour = 3_600_000
	future := present.Add(2*time.Hour).UnixMilli() - at(0)
	for name, put := range map[string]func(v int64, pairs ...string) *transform.Write{
		"R": func(v int64, pairs ...string) *transform.Write { return own("row", v, pairs...) },
		"K": func(v int64, pairs ...string) *transform.Write {
			return share(transform.ClassK, "a", "row", v, []string{"x", "gone"}, pairs...)
		},
		"D": func(v int64, pairs ...string) *transform.Write {
			return share(transform.ClassD, "a", "row", v, []string{"gone"}, pairs...)
		},
	} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " removed: ", removed), func(t *testing.T) {
				c, _ := strict(t)
				mustApply(t, c, put(1, "x", "1", "gone", "1"), put(future, "x", "broken", "gone", "2"))
				if removed {
					w := put(future+1, "x", "broken")
					w.Rows[0].Left, w.Rows[0].Cells = true, nil
					w.Rows[0].Deletes = append(w.Rows[0].Deletes, column("x"), column("gone"))
					mustApply(t, c, w)
				}
				hot := mustResync(t, c, put(20*hour, "x", "true"))
				if hot.Skipped != 1 || int64(hot.Hot) <= present.UnixMilli() {
					t.Fatalf("resync: %+v", hot)
				}
				x := Replacement{Write: put(20*hour, "x", "true"), Broken: hot.Hot, Lead: 10 * time.Minute}
				near := x
				near.Broken--
				if ok, err := c.ReplaceGuard(t.Context(), target, near); ok || err != nil {
					t.Fatalf("another guard than the broken one was replaced: %t, %v", ok, err)
				}
				if ok, err := c.ReplaceGuard(t.Context(), target, x); !ok || err != nil {
					t.Fatalf("replace: %t, %v", ok, err)
				}
				if diff := cmp.Diff(map[string]string{"row d:x": "true"}, plain(t, c)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if len(meta(t, c)) != 1 {
					t.Errorf("guards: %v", meta(t, c))
				}
				mustApply(t, c, put(21*hour, "x", "next")) // the stream goes on
				if diff := cmp.Diff(map[string]string{"row d:x": "next"}, plain(t, c)); diff != "" {
					t.Errorf("after the next change (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestGuardThatAChangeMayHaveWrittenIsNeverReplaced is attack 65: such a guard protects newer
// content.
func TestGuardThatAChangeMayHaveWrittenIsNeverReplaced(t *testing.T) {
	c, f := rig(t)
	mustApply(t, c, own("row", 9, "x", "9"))
	f.fates(nil)
	lead := present.Add(9*time.Minute).UnixMilli() - at(0) // a burst of changes ran ahead of time
	for _, v := range []int64{9, lead} {
		x := Replacement{Write: own("row", 5, "x", "5"), Broken: change.Version(at(v)), Lead: 10 * time.Minute}
		if ok, err := c.ReplaceGuard(t.Context(), target, x); ok || err == nil {
			t.Errorf("version %d: %t, %v", v, ok, err)
		}
	}
	if f.count() != 0 {
		t.Error("a call was sent")
	}
}
