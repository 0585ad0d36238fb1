package apply

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/transform"
)

// newBookTurns returns the turns of a table where removing a shelf deletes the row of its books.
func newBookTurns(t *testing.T) *turns {
	t.Helper()
	return newTurns(compiled(t, bookMapping(t)))
}

func bookMapping(t *testing.T) *transform.Mapping {
	t.Helper()
	m, problems := transform.ParseMapping("mapping", []byte(`
families: {d: {max_versions: 1}}
rules:
- name: shelf
  match: {pk: "{id}", sk: "Shelf#{s}"}
  row: "{id}#{s}"
  cells: [{attr: v, to: "d:shelf"}]
  on_remove: row
  acknowledged: [cascade]
- name: book
  match: {pk: "{id}", sk: "Book#{n}"}
  row: "{id}#{shelf}"
  cells: [{attr: v, to: "d:book/{n}"}]
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return m
}

// compiled compiles a mapping; nil stands for the preset default.
func compiled(t *testing.T, m *transform.Mapping) *transform.Program {
	t.Helper()
	key := func(name string) change.KeyAttr { return change.KeyAttr{Name: name, Type: 'S'} }
	sk := key("sk")
	p, problems := transform.Compile(transform.Table{Pipeline: "shop", Source: "Orders", Target: "orders",
		Schema: change.KeySchema{Partition: key("pk"), Sort: &sk}, View: "NEW_AND_OLD_IMAGES", Mapping: m})
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

func enqueueChange(o *turns, c *change.Change) *turn {
	turn, _ := o.prepare(c.KeyHash, nil, c)
	o.enqueue(turn)
	return turn
}

// A removal and the insert after it may be in different rows: the item has an order all the same,
// or for a while it is in both.
func TestChangesOfAnItemTakeTurnsAcrossRows(t *testing.T) {
	const keys = `{"pk":{"S":"p"},"sk":{"S":"Book#1"}}`
	book := func(shelf string) []byte {
		return []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#1"},"shelf":{"S":"` + shelf + `"}}`)
	}
	o := newBookTurns(t)
	first := enqueueChange(o, &change.Change{
		Op: change.Remove, Keys: []byte(keys), KeyHash: 7, Version: 1, Old: book("a")})
	second := enqueueChange(o, &change.Change{
		Op: change.Insert, Keys: []byte(keys), KeyHash: 7, Version: 2, New: book("b")})
	other := enqueueChange(o, &change.Change{Op: change.Insert, Keys: []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#2"}}`),
		KeyHash: 8, Version: 1, New: book("c")})
	if !slices.Contains(second.after, first) || len(other.after) > 0 {
		t.Errorf("the insert waits for %d changes, a change in another row for %d; want 1 and 0", len(second.after),
			len(other.after))
	}
}

// The end of a change must not make room before a later change that is not applied yet, and a wait
// ends with its pass.
func TestFinishedChangeKeepsTheTurnOfTheNextOne(t *testing.T) {
	o := newBookTurns(t)
	enqueue := func(version change.Version) *turn {
		return enqueueChange(o, &change.Change{Op: change.Remove, Keys: []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#1"}}`),
			KeyHash: 7, Version: version, Old: []byte(`{"pk":{"S":"p"},"sk":{"S":"Book#1"},"shelf":{"S":"a"}}`)})
	}
	first, second := enqueue(1), enqueue(2)
	o.finish(first)
	third := enqueue(3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := third.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the third change does not wait for the second: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- third.wait(t.Context()) }()
	select {
	case <-ended:
		t.Fatal("the third change goes on before the second is applied")
	case <-time.After(20 * time.Millisecond):
	}
	o.finish(second)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	o.finish(third)
	if len(o.last) != 0 {
		t.Errorf("%d turns are left after the last change", len(o.last))
	}
}

// TestResyncWithALetterThatCameLateCollectsItsRowsAgain: it has no turn in the rows of the letter.
func TestResyncWithALetterThatCameLateCollectsItsRowsAgain(t *testing.T) {
	late := &letteredItem{letters: []letterRef{{id: "1", sink: checkpoint.SinkBigtable}}}
	w := newWorker(&lanePass{turns: &turns{}, letters: &DeadLetters{items: map[uint64]*letteredItem{7: late}}})
	o := &operation{item: &ResyncItem{Hash: 7}, done: make(chan struct{}), leave: func() {}}
	w.runOperation(t.Context(), o)
	if _, err := o.wait(t.Context(), nil); !errors.Is(err, errMoreLetters) {
		t.Errorf("%v, want %v", err, errMoreLetters)
	}
}

// TestTableWithTurnsHasFewLanes: each lane that has work has a worker there, whatever Bigtable takes
// and whatever it weighs.
func TestTableWithTurnsHasFewLanes(t *testing.T) {
	shared := NewShared(Limits{Memory: 1 << 20, Lanes: 4096, Calls: 8}, nil, func() change.Millis { return 0 })
	for in, program := range map[int]*transform.Program{
		LanesWithTurns: compiled(t, bookMapping(t)), 4096: compiled(t, nil),
	} {
		l := newLanes(shared, &Options{Table: Table{Program: program}}, nil)
		if len(l.all) != in || cap(l.ready[changes]) != in || (l.turns != nil) != (in == LanesWithTurns) {
			t.Errorf("%d lanes, room for %d that are ready, want %d", len(l.all), cap(l.ready[changes]), in)
		}
	}
}
