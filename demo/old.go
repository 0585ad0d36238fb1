package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// Old is what the tables hold before the replicator starts: items that are in no stream, so that
// they must be copied.
type Old struct {
	Sandbox *sandbox.Sandbox
	Seed    uint64
	Catalog int // items of the catalogue

	items map[string]int64 // by table
	bytes int64            // of the catalogue
}

// galleryItems is how many old items are generated for each worked example; some have the same key.
const galleryItems = 200

// Fill puts the items into the tables, which must exist.
func (o *Old) Fill() error {
	now := func() int64 { return o.Sandbox.Clock.Now().Unix() }
	if err := o.Sandbox.DynamoDB.Fill(Table, o.catalog(now())); err != nil {
		return fmt.Errorf("fill %s: %w", Table, err)
	}
	for i := range Examples {
		e := &Examples[i]
		g := &gen{Rand: rand.New(rand.NewPCG(o.Seed, uint64(2000+i))), now: now}
		err := o.Sandbox.DynamoDB.Fill(e.Source, func(yield func([]byte) bool) {
			for n := 0; n < galleryItems && yield([]byte("{"+join(e.item(g))+"}")); n++ {
			}
		})
		if err != nil {
			return fmt.Errorf("fill %s: %w", e.Source, err)
		}
	}
	return o.count()
}

// catalog returns the old items of the catalogue. They have keys that the writers use, so some of
// them are changed or deleted while they are copied. A tenth has a time to live: that was over long
// ago, ends within seconds, or after the demo.
func (o *Old) catalog(now int64) func(yield func([]byte) bool) {
	r := rand.New(rand.NewPCG(o.Seed, 98))
	return func(yield func([]byte) bool) {
		for i := range o.Catalog {
			category, writer := categories[i%len(categories)], i/len(categories)%writers
			id := i / len(categories) / writers * writerIDs / (o.Catalog/len(categories)/writers + 1)
			expires := ""
			if i%10 == 0 {
				at := []int64{now - 86_400, now + r.Int64N(int64(SoonExpired/time.Second)/4), now + 3600}[r.IntN(3)]
				expires = fmt.Sprintf(`,"expires":{"N":"%d"}`, at)
			}
			if !yield(fmt.Appendf(nil, "{%s,%s%s}", catalogKey(category, writer, id), attributes(r), expires)) {
				return
			}
		}
	}
}

// count counts the items that the tables hold, and the catalogue's bytes.
func (o *Old) count() error {
	o.items = map[string]int64{}
	tables := []string{Table}
	for _, e := range Examples {
		tables = append(tables, e.Source)
	}
	for _, name := range tables {
		items, err := o.Sandbox.DynamoDB.Items(name)
		if err != nil {
			return fmt.Errorf("count items of %s: %w", name, err)
		}
		o.items[name] = int64(len(items))
		if name == Table {
			for _, item := range items {
				o.bytes += int64(len(item))
			}
		}
	}
	return nil
}

// Total returns the number of items, all tables together.
func (o *Old) Total() (n int64) {
	for _, items := range o.items {
		n += items
	}
	return n
}

// segmentItems is about how many items a segment of the catalogue has. They fit in one page, and a
// page counts as copied when all of its items are written: small ones make the progress even.
const segmentItems = 150

// backfill returns the catalogue's key `backfill`, with a read budget with which reading it takes
// about so long.
func (o *Old) backfill(reading time.Duration) string {
	units := float64(o.bytes) / 4096 / reading.Seconds()
	return fmt.Sprintf("{from: scan, read_units: %d, segments: %d}", max(10, int(units)), o.Catalog/segmentItems+1)
}
