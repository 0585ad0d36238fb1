package sandbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// oldItem is an item of about 500 bytes.
func oldItem(i int) []byte {
	return fmt.Appendf(nil, `{"pk":{"S":"%d"},"sk":{"S":"s"},"body":{"S":"%0450d"}}`, i, i)
}

func TestFilledItemsAreOlderThanTheStream(t *testing.T) {
	r := newRig(t, sandbox.Options{NoBigtable: true, NoNATS: true})
	arn := r.createTable("Orders")
	if err := r.DynamoDB.Fill("Orders", func(yield func([]byte) bool) {
		json := []byte(`{"pk":{"S":"0000"}}`)
		for i := 0; i < 2500; i++ {
			copy(json[12:], fmt.Sprintf("%04d", i)) // one slice for all
			if !yield(json) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	r.must(r.put("Orders", "0007", 1))
	records := r.records(arn)
	if len(records) != 1 || records[0].EventName != "MODIFY" || len(r.itemsOf("Orders")) != 2500 {
		t.Errorf("%d items, records %v", len(r.itemsOf("Orders")), records)
	}
	if all, _ := r.Ledger.Count("Orders"); all != 1 {
		t.Errorf("%d lines in the ledger", all)
	}
	err := r.DynamoDB.Fill("Orders", func(yield func([]byte) bool) { yield([]byte(`{"n":{"N":"1"}}`)) })
	if err == nil || !strings.Contains(err.Error(), "Missing the key pk") {
		t.Errorf("an item without a key: %v", err)
	}
}

// TestSegmentsCoverTheTableWhileWritersWrite: every item that is there all the time is on exactly
// one page, and a page ends at 1 MB.
func TestSegmentsCoverTheTableWhileWritersWrite(t *testing.T) {
	const items, segments = 20_000, 7
	w := readsWorld(t, 0, sandbox.Options{})
	w.Fill("Orders", items, oldItem)
	var writers, readers errgroup.Group
	var done atomic.Bool
	for g := range 2 {
		writers.Go(func() error {
			for i := 0; !done.Load(); i++ {
				w.Update("Orders", fmt.Sprint((i*7919+g)%items), "s", "SET n = :n", fmt.Sprintf(`":n":{"N":"%d"}`, i))
				w.Put("Orders", fmt.Sprint("extra", g, i%100), "s", "")
				w.Delete("Orders", fmt.Sprint("extra", g, (i+50)%100), "s")
			}
			return nil
		})
	}
	var mu sync.Mutex
	seen, pages := map[string]int{}, 0
	for s := range segments {
		readers.Go(func() error {
			for start := ""; ; {
				reply, err := w.Sandbox.Call(t.Context(), "Scan", fmt.Sprintf(
					`{"TableName":"Orders","ConsistentRead":true,"Segment":%d,"TotalSegments":%d%s}`, s, segments, start))
				if err != nil {
					return err
				}
				var p struct {
					Items            []struct{ PK struct{ S string } }
					LastEvaluatedKey json.RawMessage
				}
				if err := json.Unmarshal(reply, &p); err != nil {
					return err
				}
				mu.Lock()
				pages++
				for _, it := range p.Items {
					seen[it.PK.S]++
				}
				mu.Unlock()
				if p.LastEvaluatedKey == nil {
					return nil
				}
				start = `,"ExclusiveStartKey":` + string(p.LastEvaluatedKey)
			}
		})
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	done.Store(true)
	_ = writers.Wait() // never fails
	for i := range items {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Fatalf("item %d is on %d pages", i, n)
		}
	}
	if pages != 2*segments { // a segment has about 1.3 MB
		t.Errorf("%d pages", pages)
	}
}

// TestFillIsPartOfTheTablesPast: an export of a time before a fill does not have its items.
func TestFillIsPartOfTheTablesPast(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	w := readsWorld(t, 0, sandbox.Options{Clock: c})
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	w.Put("Orders", "first", "s", "")
	before := c.Now()
	c.Advance(time.Hour)
	w.Fill("Orders", 1500, oldItem)
	if err := w.Buckets.Create("backups"); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Time]string{before: `"ItemCount":1,`, c.Now(): `"ItemCount":1501,`} {
		reply := w.Call("ExportTableToPointInTime", fmt.Sprintf(
			`{"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Orders","S3Bucket":"backups","ExportTime":%d}`,
			at.Unix()))
		var e struct{ ExportDescription struct{ ExportArn string } }
		if err := json.Unmarshal(reply, &e); err != nil {
			t.Fatal(err)
		}
		var described string
		w.Until("the export is complete", func() bool {
			described = string(w.Call("DescribeExport", fmt.Sprintf(`{"ExportArn":%q}`, e.ExportDescription.ExportArn)))
			return strings.Contains(described, "COMPLETED")
		})
		if !strings.Contains(described+",", strings.TrimSuffix(want, ",")) {
			t.Errorf("export of %v: %s", at, described)
		}
	}
}
