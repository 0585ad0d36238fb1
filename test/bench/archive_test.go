package bench

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// BenchmarkArchiveVerify compares an archive in a directory with its manifests, each event of it,
// in a process of its own. It reports events per second, the CPU of the process for each event, and
// its peak memory. The day of 10 million events of 1 KB needs 5 GB of disk, and minutes to be
// written first.
func BenchmarkArchiveVerify(b *testing.B) {
	for _, day := range []archivedDay{
		{name: "million", events: 1_000_000, format: object.Parquet},
		{name: "million_in_lines", events: 1_000_000, format: object.JSONLines},
		{name: "10_million", events: 10_000_000, format: object.Parquet},
		{name: "10_million_in_lines", events: 10_000_000, format: object.JSONLines},
	} {
		b.Run(day.name, func(b *testing.B) {
			for range b.N {
				day.verify(b)
			}
		})
	}
}

// archivedDay is a day of deletions, evenly spread over its hours and over 24 shards.
type archivedDay struct {
	name   string
	events int
	format object.Format
}

// objectEvents is how many events of 1 KB an object has whose blocks reach 128 MB in the archive's
// stream.
const objectEvents = 200_000

func (d archivedDay) verify(b *testing.B) {
	b.StopTimer()
	dir := b.TempDir()
	bin := binary(b, dir)
	config := filepath.Join(dir, "tailrace.yaml")
	d.save(b, config, []byte("pipeline: bench\nsource: {region: us-east-1, endpoint: \"http://127.0.0.1:9\"}\n"+
		"queue: {dir: ./data}\narchive: {url: \"file://archive\"}\ntables:\n- {source: Sessions, archive: {}}\n"))
	d.write(b, filepath.Join(dir, "archive"))
	b.StartTimer()
	begin := time.Now()
	out, cpu, peak := command(b, dir, environment(""), bin, "archive", "verify", "--full", "--json", "-c", config)
	wall := time.Since(begin)
	b.StopTimer()
	var result struct{ Tables []manifest.Report }
	if err := json.Unmarshal(out, &result); err != nil || len(result.Tables) != 1 ||
		result.Tables[0].Events != int64(d.events) || result.Tables[0].Verdict == manifest.Different {
		b.Fatalf("archive verify: %v: %s", err, out)
	}
	b.ReportMetric(float64(d.events)/wall.Seconds(), "events/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(d.events), "cpu_µs/event")
	b.ReportMetric(peak, "MiB")
}

func (d archivedDay) save(b *testing.B, path string, data []byte) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
}

// write writes the objects, and a manifest for each hour.
func (d archivedDay) write(b *testing.B, dir string) {
	b.Helper()
	var head manifest.Head
	done, entry := 0, uint64(0)
	for n := range 24 {
		hour := manifest.Hour{Hour: layout.Hour(494_000 + n), Class: transform.ClassTTL}
		for end := d.events * (n + 1) / 24; done < end; {
			count := min(objectEvents, end-done)
			entry++
			hour.Objects = append(hour.Objects, d.object(b, dir, hour.Hour, entry, done, count))
			done += count
			hour.Events += int64(count)
		}
		hour.Deleted, hour.Counted = hour.Events, &hour.Events
		m := &manifest.Manifest{N: head.N + 1, Prev: head.Hash, Pipeline: "bench", Table: "Sessions", Last: entry,
			Through: change.Millis((hour.Hour + 1).Time().UnixMilli()), Hours: []manifest.Hour{hour}}
		text, next, err := manifest.Encode(m)
		if err != nil {
			b.Fatal(err)
		}
		d.save(b, filepath.Join(dir, filepath.FromSlash(layout.Manifest(m.Table, m.N))), text)
		head = next
	}
}

// object writes the object of some events.
func (d archivedDay) object(
	b *testing.B, dir string, hour layout.Hour, entry uint64, first, count int,
) manifest.Object {
	b.Helper()
	part := layout.Part{Table: "Sessions", Class: transform.ClassTTL, Hour: hour}
	foot := &object.Footer{Part: part, First: entry, Last: entry, Coverage: coverage.Set{}}
	for n := first; n < first+min(count, 24); n++ { // the shards
		e := archivedEvent(n, hour)
		last := n + (first+count-1-n)/24*24
		interval := coverage.Interval{From: archivedEvent(n-24, hour).Sequence, To: archivedEvent(last, hour).Sequence}
		if n < 24 {
			interval.From, interval.First = coverage.Before(e.Sequence), true
		}
		foot.Coverage.Add(coverage.Key(e.Stream, e.Shard), interval)
	}
	name := part.Object(entry, entry, "0a1b2c3d", d.format.Extension())
	path := filepath.Join(dir, filepath.FromSlash(name))
	d.save(b, path, nil)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	w := &counted{w: io.MultiWriter(f, sum)}
	if err := object.Write(w, d.options(), foot, someEvents(first, count, hour)); err != nil {
		b.Fatal(err)
	}
	return manifest.Object{
		Name: name, Bytes: w.n, SHA256: hex.EncodeToString(sum.Sum(nil)), Events: foot.Events, Digest: foot.Digest,
	}
}

func (d archivedDay) options() object.Options {
	return object.Options{Format: d.format, Pipeline: "bench"}
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func someEvents(first, count int, hour layout.Hour) iter.Seq2[*transform.Event, error] {
	return func(yield func(*transform.Event, error) bool) {
		for n := first; n < first+count; n++ {
			if !yield(archivedEvent(n, hour), nil) {
				return
			}
		}
	}
}

// archivedEvent is the deletion of an item of 1 KB that compresses to about half.
func archivedEvent(n int, hour layout.Hour) *transform.Event {
	key := fmt.Sprintf(`"pk":{"S":"session#%09d"}`, n)
	var data []byte
	for k := range 12 {
		sum := sha256.Sum256([]byte(strconv.Itoa(n*31 + k%6)))
		data = base64.StdEncoding.AppendEncode(data, sum[:])
	}
	return &transform.Event{
		Class: transform.ClassTTL, Table: "Sessions", Source: "arn:aws:dynamodb:eu-west-1:1:table/Sessions",
		Subject: "{" + key + "}", Stream: "2026-05-04T00:00:00.000", Shard: fmt.Sprintf("shardId-%020d-0a1b2c3d", (n+24)%24),
		Sequence: change.SequenceNumber(fmt.Sprintf("%021d", 100_000_000+n)), Version: change.Version(n),
		Created: change.Millis(hour.Time().UnixMilli()), Expiry: strconv.Itoa(n),
		Item: fmt.Appendf(nil, `{%s,"expires":{"N":"%d"},"user":{"S":"user-%d"},"data":{"B":"%s"},"notes":{"S":"%s"}}`,
			key, n, n%977, data, strings.Repeat("the quick brown fox jumps over the lazy dog; ", 4)),
	}
}
