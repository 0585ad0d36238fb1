package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/restore"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/ddl"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// expiredAt is the hour of the first event of an archive in these tests.
var expiredAt = layout.HourOf(now.Time())

// filled is a store and an archive of Orders: three hours with five events each. Two of the hours
// are closed.
type filled struct {
	*stored
	head manifest.Head
}

func newFilled(t *testing.T, format object.Format) *filled {
	t.Helper()
	f := &filled{stored: newStored(t)}
	text, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.config, append(text, "archive: {url: \"file:archive\"}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		o := f.object(format, i)
		if i < 2 {
			f.manifest(expiredAt+layout.Hour(i), o)
		}
	}
	f.tell()
	return f
}

// put writes a file of the archive, behind the bucket's back: creating it there waits for the disk.
func (f *filled) put(name string, data []byte) {
	f.t.Helper()
	path := filepath.Join(f.dir, "archive", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// object writes the object of an hour: the items o-0 to o-4 expired in it.
func (f *filled) object(format object.Format, hour int) manifest.Object {
	f.t.Helper()
	part := layout.Part{Table: "Orders", Class: transform.ClassTTL, Hour: expiredAt + layout.Hour(hour)}
	number := func(n int) change.SequenceNumber { return change.SequenceNumber(fmt.Sprint(1000 + n)) }
	foot := &object.Footer{Part: part, First: uint64(hour + 1), Last: uint64(hour + 1), Coverage: coverage.Set{
		coverage.Key("label", "shard"): {{From: number(hour * 5), To: number(hour*5 + 5), First: hour == 0}},
	}}
	var data bytes.Buffer
	err := object.Write(&data, object.Options{Format: format, Pipeline: "shop"}, foot,
		func(yield func(*transform.Event, error) bool) {
			for i := range 5 {
				at := change.Millis(part.Hour.Time().UnixMilli() + int64(i)*1000)
				key := fmt.Sprintf(`"pk":{"S":"o-%d"},"sk":{"N":"7"}`, i)
				if !yield(&transform.Event{
					Class: part.Class, Source: "arn:aws:dynamodb:eu-west-1:1:table/Orders", Table: "Orders",
					Subject: "{" + key + "}", Stream: "label", Shard: "shard", Sequence: number(hour*5 + i + 1),
					Version: change.Version(at), Created: at, Expiry: "12",
					Item: fmt.Appendf(nil, `{%s,"hour":{"N":"%d"}}`, key, hour),
				}, nil) {
					return
				}
			}
		})
	if err != nil {
		f.t.Fatal(err)
	}
	sum := sha256.Sum256(data.Bytes())
	hash := hex.EncodeToString(sum[:])
	name := part.Object(foot.First, foot.Last, hash, format.Extension())
	f.put(name, data.Bytes())
	return manifest.Object{
		Name: name, Bytes: int64(data.Len()), SHA256: hash, Events: foot.Events, Digest: foot.Digest,
	}
}

// manifest closes an hour.
func (f *filled) manifest(h layout.Hour, o manifest.Object) {
	f.t.Helper()
	m := &manifest.Manifest{N: f.head.N + 1, Prev: f.head.Hash, Pipeline: "shop", Table: "Orders", Hours: []manifest.Hour{{
		Hour: h, Class: transform.ClassTTL, Objects: []manifest.Object{o}, Events: o.Events, Deleted: o.Events,
		Counted: &o.Events,
	}}}
	data, head, err := manifest.Encode(m)
	if err != nil {
		f.t.Fatal(err)
	}
	f.put(layout.Manifest("Orders", m.N), data)
	f.head = head
}

// tell appends the head to the archive's stream, as the replicator does.
func (f *filled) tell() {
	f.t.Helper()
	ctx := f.t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: filepath.Join(f.dir, "data")}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		f.t.Fatal(err)
	}
	defer q.Close()
	log, err := q.Log(ctx, "Orders")
	if err != nil {
		f.t.Fatal(err)
	}
	j, err := log.Archive(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	info, err := j.Info(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := archiving.Fold(ctx, j)
	if err != nil {
		f.t.Fatal(err)
	}
	entry, err := ledger.Encode(&ledger.ManifestWritten{Head: f.head, Closed: expiredAt + 2}, s.Hash, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := j.Append(ctx, journal.End{Last: info.Last}, false, entry); err != nil {
		f.t.Fatal(err)
	}
	head, err := restore.Head(ctx, q, "Orders")
	if err != nil || head == nil || *head != f.head {
		f.t.Fatalf("the log's head is %v, %v", head, err)
	}
}

// command executes a command line with the archive's configuration.
func (f *filled) command(args ...string) (stdout, stderr string, code int) {
	f.t.Helper()
	var out, errs bytes.Buffer
	code = execute(context.WithoutCancel(f.t.Context()), append(args, "-c", f.config), &out, &errs)
	return out.String(), errs.String(), code
}

func TestArchiveIsListedVerifiedAndQueried(t *testing.T) {
	f := newFilled(t, object.Parquet)
	first := expiredAt.String()
	out, errs, code := f.command("archive", "list")
	if code != 0 || strings.Count(out, "closed") != 2 || strings.Count(out, "open") != 1 || !strings.Contains(out, first) {
		t.Errorf("list: %d\n%s%s", code, out, errs)
	}
	out, _, code = f.command("archive", "list", "--json", "--objects", "--from", first, "--to", (expiredAt + 1).String())
	var o restore.Object
	if err := json.Unmarshal([]byte(out), &o); err != nil || code != 0 || o.Events != 5 || !o.Named ||
		o.Hour != expiredAt {
		t.Errorf("objects: %d, %v\n%s", code, err, out)
	}

	for _, depth := range []string{"", "--quick", "--full"} {
		args := []string{"archive", "verify"}
		if depth != "" {
			args = append(args, depth)
		}
		if out, errs, code = f.command(args...); code != 0 || !strings.Contains(out, "Orders: ok.") || errs != "" {
			t.Errorf("verify %s: %d\n%s%s", depth, code, out, errs)
		}
	}

	query := func(args ...string) (hours []string) {
		out, errs, code := f.command(append([]string{"archive", "query", "--table", "Orders"}, args...)...)
		if code != 0 || errs != "" {
			t.Errorf("query %v: %d, %s", args, code, errs)
		}
		for line := range strings.Lines(out) {
			var e struct {
				Data struct {
					Item struct{ Hour struct{ N string } }
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			hours = append(hours, e.Data.Item.Hour.N)
		}
		return hours
	}
	for want, args := range map[string][]string{
		"[0 1 2]":     {"--key", "pk=o-3"},
		"[2]":         {"--key", `{"pk":"o-3","sk":{"N":"7.0"}}`, "--from", (expiredAt + 2).String()},
		"[]":          {"--key", "pk=o-3", "--key", "sk=8"},
		"[1 1 1 1 1]": {"--from", (expiredAt + 1).String(), "--to", (expiredAt + 2).String(), "--class", "ttl"},
		"[0 0]":       {"--to", expiredAt.Time().Add(2 * time.Second).Format(time.RFC3339)},
	} {
		if got := fmt.Sprint(query(args...)); got != want {
			t.Errorf("query %v: %s, want %s", args, got, want)
		}
	}
	if _, errs, code := f.command("archive", "query", "--table", "Orders", "--key", "id=1"); code != 2 ||
		!strings.Contains(errs, `no attribute "id"`) {
		t.Errorf("query by another key: %d, %s", code, errs)
	}
}

// TestListOfSeveralTablesIsOneTable, with one header.
func TestListOfSeveralTablesIsOneTable(t *testing.T) {
	f := newFilled(t, object.Parquet)
	text, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("{source: Orders,"), []byte("{source: Other, target: other}, {source: Orders,"), 1)
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	part := layout.Part{Table: "Other", Class: transform.ClassTTL, Hour: expiredAt}
	f.put(part.Object(1, 1, strings.Repeat("0", 64), "parquet"), []byte("of another table"))
	out, errs, code := f.command("archive", "list")
	if code != 0 || strings.Count(out, "TABLE") != 1 || strings.Count(out, "\n") != 5 || errs != "" {
		t.Errorf("list: %d\n%s%s", code, out, errs)
	}
	out, errs, code = f.command("archive", "list", "--to", "2001-01-01")
	if code != 0 || strings.Count(out, "\n") != 1 || strings.Count(errs, "is of that time") != 2 {
		t.Errorf("list of a time without events: %d\n%s%s", code, out, errs)
	}
}

func TestArchiveThatWasCutOffDiffersAndIsUnprovenWithoutTheLog(t *testing.T) {
	f := newFilled(t, object.JSONLines)
	if err := os.Remove(filepath.Join(f.dir, "archive", layout.Manifest("Orders", 2))); err != nil {
		t.Fatal(err)
	}
	out, _, code := f.command("archive", "verify")
	if code != 4 || !strings.Contains(out, "the replicator wrote 2: its end was cut off") {
		t.Errorf("with the log: %d\n%s", code, out)
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "data")); err != nil {
		t.Fatal(err)
	}
	out, errs, code := f.command("archive", "verify", "--json")
	var v restore.Verified
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || v.Verdict != manifest.Unproven ||
		v.Tables[0].Counts[manifest.HeadUnknown] != 1 || !strings.Contains(errs, "the queue cannot be reached") {
		t.Errorf("without the log: %d, %v\n%s%s", code, err, out, errs)
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "archive")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := f.command("archive", "list"); code != 3 || !strings.Contains(errs, "next: ") {
		t.Errorf("without the archive: %d, %s", code, errs)
	}
}

// TestStoreThatFailsSaysWhatToDo: it is the environment, and not the command line, that is wrong.
func TestStoreThatFailsSaysWhatToDo(t *testing.T) {
	f := newFilled(t, object.Parquet)
	failed := func(want string) {
		t.Helper()
		if _, errs, code := f.command("archive", "verify"); code != 3 || !strings.Contains(errs, want) {
			t.Errorf("verify: %d, %s, want %q", code, errs, want)
		}
	}
	path := filepath.Join(f.dir, "archive", f.object(object.Parquet, 0).Name)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o750)); err != nil {
		t.Fatal(err)
	}
	failed("next: something else has the name of a file of the archive")

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	text, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("file:archive"), []byte("s3://cold?endpoint="+s.URL), 1)
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	failed("next: is the store of archive.url up")
}

// TestArchivedEventsAreReadByAFullVerification: an object that was damaged before its hash was
// taken.
func TestArchivedEventsAreReadByAFullVerification(t *testing.T) {
	for _, format := range []object.Format{object.Parquet, object.JSONLines} {
		f := newFilled(t, format)
		o := f.object(format, 2)
		data, err := os.ReadFile(filepath.Join(f.dir, "archive", o.Name))
		if err != nil {
			t.Fatal(err)
		}
		for i := 30; i < len(data)/2; i++ { // not every column of Parquet counts for the digest
			data[i] ^= 1
		}
		sum := sha256.Sum256(data)
		o.SHA256 = hex.EncodeToString(sum[:])
		f.put(o.Name, data)
		f.manifest(expiredAt+2, o)
		f.tell()
		if out, errs, code := f.command("archive", "verify"); code != 0 {
			t.Errorf("%s, by its bytes: %d\n%s%s", format, code, out, errs)
		}
		out, errs, code := f.command("archive", "verify", "--full")
		if code != 4 || !strings.Contains(out, "cannot be read") {
			t.Errorf("%s, by its events: %d\n%s%s", format, code, out, errs)
		}
	}
}

// TestArchiveOutlivesItsTable: what expired is asked for years after its table was retired.
func TestArchiveOutlivesItsTable(t *testing.T) {
	f := newFilled(t, object.Parquet)
	text, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("source: Orders, target: orders"), []byte("source: Other, target: other"), 1)
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := f.command("archive", "query", "--table", "Orders", "--key", "pk=o-1")
	if code != 0 || strings.Count(out, "\n") != 3 {
		t.Errorf("query: %d\n%s%s", code, out, errs)
	}
	if _, errs, code := f.command("archive", "list", "--table", "Ordres"); code != 2 ||
		!strings.Contains(errs, "the configuration has Other") {
		t.Errorf("a table that never was: %d, %s", code, errs)
	}
}

func TestArchiveCommandsNeedAnArchive(t *testing.T) {
	s := newStored(t)
	for _, command := range []string{"list", "verify"} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), []string{"archive", command, "-c", s.config}, &out, &errs)
		if code != 2 || !strings.Contains(errs.String(), "no archive of objects") {
			t.Errorf("%s: %d, %s", command, code, errs.String())
		}
	}
}

func TestStatementsForQueryEngines(t *testing.T) {
	f := newFilled(t, object.Parquet)
	for _, args := range [][]string{nil, {"--table", "Orders"}} {
		out, errs, code := f.command(append([]string{"archive", "ddl", "duckdb"}, args...)...)
		if want := args != nil; code != 0 || strings.Contains(out, `VIEW "Orders"`) != want {
			t.Errorf("%v: %d\n%s%s", args, code, out, errs)
		}
	}
	out, errs, code := f.command("archive", "ddl", "duckdb", "--table", "Orders", "--json")
	var s archiveStatement
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 || s.Table != "Orders" || s.Schema != 1 ||
		s.Dialect != ddl.DuckDB || !strings.Contains(s.SQL, "read_parquet(") {
		t.Errorf("JSON: %d, %v\n%s%s", code, err, out, errs)
	}
	for want, args := range map[string][]string{
		"has Orders": {"duckdb", "--table", "Ordres"},
		"gs://":      {"bigquery", "--table", "Orders"}, "athena, bigquery": {"mysql"},
	} {
		out, errs, code := f.command(append([]string{"archive", "ddl"}, args...)...)
		if code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: %d, %q, %s", args, code, out, errs)
		}
	}
}
