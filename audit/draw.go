package audit

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
)

// Drawer draws items of a table: one random item from the first page of each of some random
// segments. Segments are ranges of the keys' hashes, of equal width. So an item in a sparse segment
// is drawn a little more often than one in a dense segment; and of a segment with several pages
// only the first one is seen.
type Drawer struct {
	Page   func(ctx context.Context, segment int) (*source.ItemPage, error) // the first page of a segment
	Total  int                                                              // segments of the table
	Schema change.KeySchema
	Rand   *rand.Rand
	Drawn  func(n int) // called when an item was drawn; may be nil
}

const (
	itemsPerSegment = 16        // at most about so many are read to draw one
	bytesPerSegment = 256 << 10 // a page holds four times as much
	maxSegments     = 1_000_000 // of DynamoDB
	emptyPerItem    = 20        // pages without a new item, for each item that is wanted
)

// Segments returns into how many segments a table is divided to draw n items. items and bytes may
// be old or unknown.
func Segments(n int, items, bytes int64) int {
	return int(min(max(items/itemsPerSegment, bytes/bytesPerSegment, int64(n), 1), maxSegments))
}

// Draw returns the canonical keys of n different items; fewer where the table has not as many, or
// they are hard to find: empty segments are drawn again, but not without end.
func (d *Drawer) Draw(ctx context.Context, n int) (keys []string, err error) {
	seen, done := map[string]bool{}, map[int]bool{}
	for fruitless := 0; len(keys) < n && len(done) < d.Total && fruitless < n*emptyPerItem; {
		segment := d.Rand.IntN(d.Total)
		if done[segment] {
			fruitless++
			continue
		}
		page, err := d.Page(ctx, segment)
		if err != nil {
			return nil, err
		}
		fresh, err := d.fresh(page, seen)
		page.Free()
		if err != nil {
			return nil, err
		}
		if len(fresh) <= 1 {
			done[segment] = true // its page has no second one
		}
		if len(fresh) == 0 {
			fruitless++
			continue
		}
		key := fresh[d.Rand.IntN(len(fresh))]
		seen[key], keys = true, append(keys, key)
		if d.Drawn != nil {
			d.Drawn(len(keys))
		}
	}
	return keys, nil
}

// fresh returns the keys of the items of a page that were not drawn yet.
func (d *Drawer) fresh(page *source.ItemPage, seen map[string]bool) (keys []string, err error) {
	var dec change.Decoder
	for _, raw := range page.Items {
		dec.Reset()
		img, err := dec.Image(raw)
		if err != nil {
			return nil, fmt.Errorf("decode item: %w", err)
		}
		key, err := d.Schema.Canonical(nil, img)
		if err != nil {
			return nil, err
		}
		if !seen[string(key)] {
			keys = append(keys, string(key))
		}
	}
	return keys, nil
}
