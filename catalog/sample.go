package catalog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// Sample calls f with at most n items of a table. The images stay valid after f has returned.
func Sample(ctx context.Context, src *source.Source, table string, n int, f func(change.Image)) error {
	var d change.Decoder
	for page, err := range src.Sample(ctx, table, n) {
		if err != nil {
			return source.Explain(fmt.Errorf("sample %s: %w", table, err))
		}
		for _, raw := range page.Items {
			if n--; n < 0 {
				return nil
			}
			img, err := d.Image(bytes.Clone(raw)) // the page is freed before the sampled items are looked at
			if err != nil {
				return fmt.Errorf("sample %s: %w", table, err)
			}
			f(img)
		}
	}
	return nil
}

// Split sets the split keys of the targets from a sample of the given number of items of each
// source. The keys of a target are set on its first table alone.
func (c *Catalog) Split(ctx context.Context, src *source.Source, sample int) error {
	rows, size := map[string][][]byte{}, map[string]int64{}
	for _, t := range c.Tables {
		survey := propose.NewSurvey(t.Program)
		if err := Sample(ctx, src, t.Source, sample, survey.Add); err != nil {
			return err
		}
		rows[t.Target] = append(rows[t.Target], survey.Rows()...)
		size[t.Target] += t.Info.Bytes
	}
	for _, t := range c.Tables {
		t.Splits = propose.Splits(rows[t.Target], propose.Parts(size[t.Target]))
		delete(rows, t.Target)
	}
	return nil
}
