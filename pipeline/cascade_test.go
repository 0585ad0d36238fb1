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

// Each row refuses its first write, which is that of the removal or, without an order of the row, a comment's.
func TestRetriedRemovalKeepsWhatWasWrittenAfterIt(t *testing.T) {
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

// Items move between rows by an attribute, so that a change may have two rows: the order of both counts.
func TestOrderOfRowsThatItemsMoveBetween(t *testing.T) {
	w := newWorld(t)
	w.mapping = `
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
	w.createTable("Orders")
	rnd := rand.New(rand.NewPCG(78, 1))
	const partitions, shelves = 3, 3
	for i := range 600 {
		p, s := fmt.Sprint("p", rnd.IntN(partitions)), rnd.IntN(shelves)
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
