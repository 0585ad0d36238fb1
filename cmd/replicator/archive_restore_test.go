package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/restore"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/source/putback"
	"github.com/tailrace-cdc/replicator/transform"
)

// shelved is an archive of the table Orders, and a sandbox that has the table. Calls of PutItem are counted.
type shelved struct {
	*sandbox.World
	t           *testing.T
	dir, config string
	objects     int

	puts   atomic.Int64
	onPut  atomic.Pointer[func(n int64)] // called with the number of each PutItem before it is answered; may be nil
	events int
}

func newShelved(t *testing.T) *shelved {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := &shelved{t: t, dir: t.TempDir(), World: sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		NoBigtable: true, NoNATS: true,
	}})}
	s.CreateTable("Orders")
	s.DynamoDB.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
				n := s.puts.Add(1)
				if f := s.onPut.Load(); f != nil {
					(*f)(n)
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	s.config = filepath.Join(s.dir, "tailrace.yaml")
	text := fmt.Sprintf(`
pipeline: shop
source: {region: eu-west-1, endpoint: %q}
bigtable: {project: local, instance: local, endpoint: "127.0.0.1:1"}
queue: {dir: ./data}
tables: [{source: Orders, target: orders}]
archive: {url: "file:archive"}
`, s.Endpoint())
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// archive writes an object with events of one class and hour, in a second each. An item is typed JSON behind its key.
func (s *shelved) archive(class transform.EventClass, hour int, events ...*transform.Event) {
	s.t.Helper()
	part := layout.Part{Table: "Orders", Class: class, Hour: expiredAt + layout.Hour(hour)}
	s.objects++
	number := func(n int) change.SequenceNumber { return change.SequenceNumber(fmt.Sprint(100000 + n)) }
	foot := &object.Footer{Part: part, First: uint64(s.objects), Last: uint64(s.objects), Coverage: coverage.Set{
		coverage.Key("label", "shard"): {{From: number(s.events), To: number(s.events + len(events))}},
	}}
	var data bytes.Buffer
	err := object.Write(&data, object.Options{Format: object.Parquet, Pipeline: "shop"}, foot,
		func(yield func(*transform.Event, error) bool) {
			for i, e := range events {
				s.events++
				e.Class, e.Table, e.Source = class, "Orders", "arn:aws:dynamodb:eu-west-1:1:table/Orders"
				e.Stream, e.Shard, e.Sequence = "label", "shard", number(s.events)
				e.Created = change.Millis(part.Hour.Time().UnixMilli() + int64(i%3600)*1000)
				e.Version = change.Version(e.Created) + change.Version(i)
				if !yield(e, nil) {
					return
				}
			}
		})
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(data.Bytes())
	name := part.Object(foot.First, foot.Last, hex.EncodeToString(sum[:]), object.Parquet.Extension())
	path := filepath.Join(s.dir, "archive", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// raceEnabled reports whether the race detector is on.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// expired returns the event of an item; attributes are those beside its key, "" for an event without an image.
func expired(key, attributes string) *transform.Event {
	subject := fmt.Sprintf(`"pk":{"S":%q},"sk":{"S":"1"}`, key)
	e := &transform.Event{Subject: "{" + subject + "}"}
	if attributes != "" {
		e.Item = fmt.Appendf(nil, `{%s,%s}`, subject, attributes)
	}
	return e
}

// restore runs the command with --json, and returns the summary.
func (s *shelved) restore(ctx context.Context, want int, args ...string) (out restore.Restored, errs string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	line := append([]string{"archive", "restore", "--table", "Orders", "--json", "-c", s.config}, args...)
	if code := execute(ctx, line, &stdout, &stderr); code != want {
		s.t.Fatalf("restore %v: %d, want %d\n%s%s", args, code, want, stdout.String(), stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		s.t.Fatalf("restore %v: %v\n%s", args, err, stdout.String())
	}
	return out, stderr.String()
}

// item returns an item of the table, "" if there is none.
func (s *shelved) item(key string) string {
	s.t.Helper()
	reply := s.Call("GetItem", fmt.Sprintf(`{"TableName":"Orders","Key":{"pk":{"S":%q},"sk":{"S":"1"}}}`, key))
	var out struct{ Item json.RawMessage }
	if err := json.Unmarshal(reply, &out); err != nil {
		s.t.Fatal(err)
	}
	return string(out.Item)
}

// TestRestoreIsExactAndGoesOnAfterAnInterruption: 10,000 items of every type, some with older events and some that were
// re-created, throttled and with a lost reply. The first run is cut off in the middle.
func TestRestoreIsExactAndGoesOnAfterAnInterruption(t *testing.T) {
	const earlier, middle = 500, 1000
	n := 10_000
	if raceEnabled() {
		n = 2500 // the detector makes each call ten times slower
	}
	s := newShelved(t)
	key := func(i int) string { return fmt.Sprintf("o-%05d", i) }
	attributes := func(i int) string {
		return fmt.Sprintf(`"n":{"N":"%d.2345678901234567890123456789012345"},"ns":{"NS":["2.5","%d"]},"b":{"B":"AAH/"},`+
			`"e":{"S":""},"m":{"M":{"l":{"L":[{"NULL":true},{"BOOL":false},{"N":"1E-130"}]}}},"ss":{"SS":["x","é\"\n"]}`, i, i)
	}
	var old, first, second []*transform.Event
	originals := map[string][]byte{}
	for i := range n {
		e := expired(key(i), attributes(i))
		originals[e.Subject] = e.Item
		if i%2 == 0 {
			first = append(first, e)
		} else {
			second = append(second, e)
		}
		if i < earlier {
			old = append(old, expired(key(i), `"old":{"BOOL":true}`))
		}
	}
	s.archive(transform.ClassTTL, 0, old...)
	s.archive(transform.ClassTTL, 1, append(first, expired("lost", ""))...)
	s.archive(transform.ClassInferred, 2, append(second, expired("erased", `"x":{"S":"until then"}`))...)
	s.archive(transform.ClassUser, 3, expired("erased", `"x":{"S":"a user's"}`))
	again := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":"1"},"new":{"N":"1"}}`, key(7))
	s.Call("PutItem", `{"TableName":"Orders","Item":`+again+`}`)
	originals[expired(key(7), "").Subject] = []byte(again)

	s.puts.Store(0)
	dry, _ := s.restore(t.Context(), 0, "--read-units", "1e6")
	want := restore.Restored{Schema: 1, Table: "Orders", DryRun: true, Events: int64(n) + earlier + 3,
		Items: int64(n) + 2, Restored: int64(n) - 1, Bytes: dry.Bytes, WriteUnits: float64(n) - 1,
		ReadUnits: dry.ReadUnits, Recreated: 1, WithoutItem: 1, DeletedByUser: 1}
	if dry != want || dry.Bytes < 60*int64(n) || s.puts.Load() != 0 {
		t.Errorf("dry run with %d writes:\n%+v, want\n%+v", s.puts.Load(), dry, want)
	}

	ctx, kill := context.WithCancel(t.Context())
	cut := func(n int64) {
		if n == middle {
			kill()
		}
	}
	s.onPut.Store(&cut)
	differences := filepath.Join(s.dir, "differences.jsonl")
	args := []string{"--yes", "--write-units", "1e6", "--differences", differences}
	_, errs := s.restore(ctx, 1, args...)
	if there := len(s.Items("Orders")); there < middle/2 || there > middle+putback.Concurrency ||
		!strings.Contains(errs, "running it again") {
		t.Errorf("%d items after an interruption: %s", there, errs)
	}
	there := int64(len(s.Items("Orders"))) // at least: the server may be about to answer calls that were cut off

	inject := func(r fault.Rule) {
		if err := s.Faults.Inject(r); err != nil {
			t.Error(err)
		}
	}
	inject(fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "ProvisionedThroughputExceededException", Times: 3})
	s.puts.Store(0)
	lose := func(n int64) {
		if n == 500 { // the items of these calls are written, and their replies are lost
			inject(fault.Rule{Effect: fault.Reset, Operation: "PutItem", Times: 3})
		}
	}
	s.onPut.Store(&lose)
	out, _ := s.restore(t.Context(), 4, args...)
	if out.Restored+out.Unchanged != int64(n)-1 || out.Unchanged < there-1 || out.Recreated != 1 || out.WithoutItem != 1 {
		t.Errorf("with %d items: %+v", there, out)
	}
	if puts := s.puts.Load(); puts < out.Restored || puts > out.Restored+100 {
		t.Errorf("%d writes for %d items", puts, out.Restored)
	}
	for _, item := range s.Items("Orders") {
		var k struct {
			PK struct{ S string } `json:"pk"`
		}
		if err := json.Unmarshal(item, &k); err != nil {
			t.Fatal(err)
		}
		subject := expired(k.PK.S, "").Subject
		if !putback.Equal(item, originals[subject], "") {
			t.Fatalf("%s, want %s", item, originals[subject])
		}
		delete(originals, subject)
	}
	if len(originals) != 0 {
		t.Errorf("%d items are missing", len(originals))
	}
	lines, err := os.ReadFile(differences)
	if err != nil || strings.Count(string(lines), "\n") != 2 || !strings.Contains(string(lines), `"recreated"`) ||
		!strings.Contains(string(lines), key(7)) || !strings.Contains(string(lines), `"without_item"`) {
		t.Errorf("differences: %v\n%s", err, lines)
	}
}

func TestRestoreChoosesEventAndTimeToLive(t *testing.T) {
	s := newShelved(t)
	expires := func(at string) string { return `"expires":{"N":"` + at + `"},"hour":{"N":"0"}` }
	past := fmt.Sprint(now.Time().Unix())
	s.archive(transform.ClassTTL, 0, expired("a", expires(past)), expired("b", expires(past)),
		expired("c", `"hour":{"N":"0"}`))
	s.archive(transform.ClassTTL, 1, expired("a", strings.Replace(expires(past), `"0"`, `"1"`, 1)))
	if _, errs := s.restore(t.Context(), 2, "--ttl", "remove"); !strings.Contains(errs, "--ttl-attribute") {
		t.Errorf("time to live is off: %s", errs)
	}
	s.Call("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	if _, errs := s.restore(t.Context(), 2); !strings.Contains(errs, `expire by "expires"`) {
		t.Errorf("without --ttl: %s", errs)
	}
	if out, _ := s.restore(t.Context(), 0, "--ttl", "keep"); out.ExpireAtOnce != 2 || out.Restored != 3 {
		t.Errorf("keep: %+v", out)
	}
	if out, _ := s.restore(t.Context(), 0, "--ttl", "+30d", "--key", "pk=a", "--yes"); out.Restored != 1 ||
		out.ExpireAtOnce != 0 || strings.Contains(s.item("a"), past) || !strings.Contains(s.item("a"), `"1"`) {
		t.Errorf("+30d: %+v, %s", out, s.item("a"))
	}
	asOf := expiredAt.Time().Format("2006-01-02T15:04:05Z07:00")
	if out, _ := s.restore(t.Context(), 4, "--ttl", "remove", "--as-of", asOf, "--yes"); out.Items != 1 ||
		out.Recreated != 1 { // the newest event of a at that time has another content
		t.Errorf("as of the first second: %+v", out)
	}
	out, _ := s.restore(t.Context(), 0, "--ttl", "remove", "--yes", "--class", "ttl")
	if out.Restored != 2 || out.Unchanged != 1 || strings.Contains(s.item("b"), "expires") {
		t.Errorf("remove: %+v, %s", out, s.item("b"))
	}
	if out, _ := s.restore(t.Context(), 0, "--ttl", "keep", "--from", expiredAt.String(), "--to",
		(expiredAt + 1).String()); out.Events != 3 || out.Items != 3 {
		t.Errorf("in an hour: %+v", out)
	}
	s.Call("DeleteTable", `{"TableName":"Orders"}`)
	if _, errs := s.restore(t.Context(), 3, "--ttl", "keep", "--yes"); !strings.Contains(errs, "Orders") {
		t.Errorf("without the table: %s", errs)
	}
}

func TestRestoreIsARefusalWithoutAnswers(t *testing.T) {
	s := newShelved(t)
	s.archive(transform.ClassTTL, 0, &transform.Event{Subject: `{"pk":{"S":"a"},"sk":{"S":"1"}}`, Expiry: "12",
		Item: []byte(`{"pk":{"S":"a"},"sk":{"S":"1"},"e":{"N":"12"}}`)})
	for _, args := range []string{
		"", "--ttl 30d", "--ttl keep --class other", "--ttl keep --write-units 0", "--ttl keep --key pk",
		"--ttl keep --as-of x", "--ttl keep --as-of 2026-01-01 --to 2026-01-02",
		"--ttl keep --from 2026-01-02 --as-of 2026-01-01",
	} {
		s.restore(t.Context(), 2, strings.Fields(args)...)
	}
	if out, _ := s.restore(t.Context(), 0, "--ttl", "+1h", "--ttl-attribute", "e", "--yes"); out.Restored != 1 ||
		strings.Contains(s.item("a"), `"12"`) {
		t.Errorf("an attribute that is named: %+v, %s", out, s.item("a"))
	}
	s.restore(t.Context(), 3, "--ttl", "keep", "--yes", "--differences", filepath.Join(s.dir, "none", "x"))
}
