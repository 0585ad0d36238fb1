package audit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/verify"
)

func newKeys(t *testing.T, folder string, marks ...checkpoint.Mark) *keys {
	t.Helper()
	k, err := openKeys(folder, marks)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustAdd(t *testing.T, k *keys, part, table int, key string, rows ...string) {
	t.Helper()
	if err := k.add(part, table, []byte(key), nil); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := k.add(part, table, []byte(key), []byte(row)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustSave(t *testing.T, k *keys) {
	t.Helper()
	if err := k.save(); err != nil {
		t.Fatal(err)
	}
}

// items lists what each yields, in its batches: "TABLE KEY ROW...".
func items(t *testing.T, each func(int, func([]verify.Candidate) error) error, n int) (batches [][]string) {
	t.Helper()
	err := each(n, func(batch []verify.Candidate) error {
		var list []string
		for _, c := range batch {
			s := fmt.Sprint(c.Table, " ", c.Key)
			for _, row := range c.Rows {
				s += " " + string(row)
			}
			list = append(list, s)
		}
		batches = append(batches, list)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return batches
}

// TestKeptItemsComeOnceWithAllTheirRows: whether they were not equal, or have changed since, or
// both; also after the process has ended. Items of different tables may have one key.
func TestKeptItemsComeOnceWithAllTheirRows(t *testing.T) {
	folder := t.TempDir()
	begin := checkpoint.Mark{Seq: 3}
	k := newKeys(t, folder, begin, begin)
	mustAdd(t, k, partOpen, 0, "a", "r2", "r1")
	mustAdd(t, k, partOpen, 0, "b")
	mustAdd(t, k, partChanged, 0, "a", "r1", "r3")
	mustAdd(t, k, partChanged, 1, "a", "r9")
	mustSave(t, k)
	mustAdd(t, k, partChanged, 0, "lost") // by a process that is killed before it saves
	k = newKeys(t, folder, checkpoint.Mark{Seq: 99})
	if len(k.Marks) != 2 || k.Marks[1] != begin {
		t.Errorf("the marks are %+v", k.Marks)
	}
	mustAdd(t, k, partChanged, 0, "c", "r1")
	mustAdd(t, k, partChanged, 0, "a", "r1")
	k.Marks[1], k.Broken = checkpoint.Mark{Seq: 8}, "why"
	mustSave(t, k)
	k = newKeys(t, folder)
	if k.Marks[0] != begin || k.Marks[1].Seq != 8 || k.Broken != "why" {
		t.Errorf("the progress is %+v", k.progress)
	}
	for n, want := range map[int][][]string{
		1: {{"0 a r1 r2 r3"}, {"0 b"}, {"0 c r1"}, {"1 a r9"}},
		3: {{"0 a r1 r2 r3", "0 b", "0 c r1"}, {"1 a r9"}},
		4: {{"0 a r1 r2 r3", "0 b", "0 c r1", "1 a r9"}},
	} {
		if d := cmp.Diff(want, items(t, k.each, n)); d != "" {
			t.Errorf("%d at a time (-want +got):\n%s", n, d)
		}
	}
	if got := items(t, newKeys(t, t.TempDir()).each, 3); got != nil {
		t.Errorf("without items: %v", got)
	}
}

// TestHotItemIsStoredOnce: not each time it changes, also where memory is written because it is
// full.
func TestHotItemIsStoredOnce(t *testing.T) {
	k := newKeys(t, t.TempDir(), checkpoint.Mark{Seq: 3})
	w := k.parts[partChanged]
	for range 1000 {
		mustAdd(t, k, partChanged, 0, "hot", "r")
	}
	k.Marks[0] = checkpoint.Mark{Seq: 7}
	for i := 0; len(w.Part().Files) == 0; i++ {
		mustAdd(t, k, partChanged, 0, fmt.Sprintf("item %d with a long key: %01000d", i, i))
		if i > 2*memory/1000 {
			t.Fatalf("%d items are in memory", i)
		}
	}
	if n := w.Part().Files[0].Records; n > memory/1000 {
		t.Errorf("%d records for %d bytes", n, memory)
	}
	if again := newKeys(t, k.store.Dir()+"/.."); again.Marks != nil { // marks never pass what is stored with them
		t.Errorf("marks %+v were stored before all keys were", again.Marks)
	}
}
