package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/codes"

	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

// videos is a mapping in which the removal of a video takes its row along, with the comments in it.
const videos = `
families: {d: {max_versions: 1}}
rules:
- name: video
  match: {pk: "{id}", sk: "Video"}
  row: "v#{id}"
  cells: [{attr: title, to: "d:title"}]
  on_remove: row
  acknowledged: [cascade]
- name: comment
  match: {pk: "{id}", sk: "Comment#{n}"}
  row: "v#{id}"
  cells: [{attr: text, to: "d:comment/{n}"}]
`

// Each row refuses its first write, which is that of the removal or, without an order of the row, a
// comment's.
func TestRetriedRemovalKeepsWhatWasWrittenAfterIt(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.mapping = videos
	w.createTable("Orders")
	const n = 40
	for i := range n {
		w.put("Orders", fmt.Sprint("x", i), "Video", `"title":{"S":"t"}`)
	}
	r := w.start("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		w.front.Faults.RefuseRow(fmt.Appendf(nil, "v#x%d", i), codes.Unavailable, 1)
		w.delete("Orders", fmt.Sprint("x", i), "Video")
		w.put("Orders", fmt.Sprint("x", i), "Comment#1", `"text":{"S":"hello"}`)
	}
	r = w.start("Orders")
	r.settle()
	r.equal()
	if rows := len(r.stored("Orders")); rows != n {
		t.Errorf("%d rows, want the comments' %d", rows, n)
	}
}

// shelves is a mapping in which the removal of a shelf takes along its row, and books move between
// them.
const shelves = `
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
`

// Items move between rows by an attribute, so that a change may have two rows: the order of both
// counts.
func TestOrderOfRowsThatItemsMoveBetween(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.mapping = shelves
	w.createTable("Orders")
	rnd := rand.New(rand.NewPCG(78, 1))
	const partitions, perPartition = 3, 3
	for i := range 600 {
		p, s := fmt.Sprint("p", rnd.IntN(partitions)), rnd.IntN(perPartition)
		v := fmt.Sprintf(`"v":{"N":"%d"}`, i)
		switch rnd.IntN(5) {
		case 0: // and its books, as an application does it
			for n := range 6 {
				w.post("UpdateItem", fmt.Sprintf(`{"TableName":"Orders","Key":{"pk":{"S":%q},"sk":{"S":"Book#%d"}},
					"UpdateExpression":"SET shelf = :none","ExpressionAttributeValues":{":none":{"S":"none"}}}`, p, n))
			}
			w.delete("Orders", p, fmt.Sprint("Shelf#", s))
		case 1:
			w.put("Orders", p, fmt.Sprint("Shelf#", s), v)
		default:
			w.put("Orders", p, fmt.Sprint("Book#", rnd.IntN(6)), fmt.Sprintf(`%s,"shelf":{"S":"%d"}`, v, s))
		}
	}
	w.front.Faults.Random(sandbigtable.Odds{Refuse: 0.1, Ambiguous: 0.1})
	r := w.start("Orders")
	r.settle()
	r.equal()
}

// Far more lanes than workers wait for one change: that gets a worker all the same.
func TestChangesThatWaitForTheirTurnLeaveAWorkerToTheFirst(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.mapping = shelves
	w.createTable("Orders")
	w.createTable("Users") // each table has a part of the workers
	r := w.start("Orders", "Users")
	r.settle()
	w.front.Faults.RefuseRow([]byte("p#a"), codes.Unavailable, -1)
	const books = 200
	w.put("Orders", "p", "Shelf#a", `"v":{"N":"1"}`)
	r.until("the shelf waits for Bigtable", func() bool { return r.metric("tailrace_bigtable_retries_total") > 0 })
	for _, move := range []func(int) string{func(int) string { return "a" }, func(i int) string { return fmt.Sprint(i) }} {
		for i := range books {
			w.put("Orders", "p", fmt.Sprint("Book#", i), fmt.Sprintf(`"v":{"N":"1"},"shelf":{"S":%q}`, move(i)))
		}
	}
	r.until("the books are in the log", func() bool { return r.table("Orders").Changes == 1+2*books })
	w.front.Faults.Calm()
	r.settle()
	r.equal()
}
