package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// scratch returns a file with the content, as those are that an archive stores.
func scratch(t testing.TB, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

func createBytes(t testing.TB, b Bucket, name string, content []byte) error {
	t.Helper()
	return b.Create(t.Context(), name, scratch(t, content), int64(len(content)))
}

func content(t testing.TB, b Bucket, name string) []byte {
	t.Helper()
	r, err := b.Open(t.Context(), name)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	defer r.Close()
	all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return all
}

func names(t testing.TB, b Bucket, prefix string) (all []string) {
	t.Helper()
	for info, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %s: %v", prefix, err)
		}
		all = append(all, info.Name)
	}
	return all
}

// random returns bytes in which no part looks like another, the same for each seed.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(b)
	return b
}

// conform holds a store to what Bucket promises. open returns buckets of one empty place, as two
// processes have them.
func conform(t *testing.T, open func(t *testing.T) Bucket) {
	t.Run("a name is created once", func(t *testing.T) { conformOnce(t, open(t)) })
	t.Run("one of many wins", func(t *testing.T) { conformRace(t, open(t), open(t)) })
	t.Run("ranges", func(t *testing.T) { conformRanges(t, open(t)) })
	t.Run("listings", func(t *testing.T) { conformList(t, open(t)) })
	t.Run("tables", func(t *testing.T) { conformTables(t, open(t)) })
	t.Run("probe", func(t *testing.T) {
		b := open(t)
		for range 2 {
			if err := Probe(t.Context(), b); err != nil {
				t.Errorf("%v; %s", err, Hint(err))
			}
		}
	})
	t.Run("ended context", func(t *testing.T) {
		b := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := b.Create(ctx, "canceled", scratch(t, random(1, 5<<20)), 5<<20)
		if !errors.Is(err, context.Canceled) || Classify(err) != failure.Canceled {
			t.Errorf("create: %v, %s", err, Classify(err))
		}
	})
}

func conformOnce(t *testing.T, b Bucket) {
	name := "tr_table=T/tr_class=ttl/tr_dt=2026-05-04/tr_hr=23/0001-0002-0011aabb.parquet"
	if _, err := b.Open(t.Context(), name); !errors.Is(err, ErrNotFound) || Classify(err) != failure.Missing {
		t.Errorf("open of what is not there: %v, %s", err, Classify(err))
	}
	want := random(1, 100_000)
	f := scratch(t, append(slices.Clone(want), "more than the object"...))
	if err := b.Create(t.Context(), name, f, int64(len(want))); err != nil {
		t.Fatalf("%v; %s", err, Hint(err))
	}
	for _, again := range [][]byte{want, random(2, 50_000), nil} {
		if err := createBytes(t, b, name, again); !errors.Is(err, ErrExists) || Classify(err) != failure.Rejected {
			t.Errorf("create of a name that is taken: %v, %s", err, Classify(err))
		}
		if !bytes.Equal(content(t, b, name), want) {
			t.Error("the object is another one than was created")
		}
	}
	if err := createBytes(t, b, "empty", nil); err != nil || len(content(t, b, "empty")) != 0 {
		t.Errorf("empty object: %v", err)
	}
	for _, bad := range []string{
		"", ".", "/a", "a//b", "../a", "a/../../b", "a/", `a\b`, "a?b", "50%", "a#b", "__0x41__", "a../b", "a\nb",
	} {
		if err := createBytes(t, b, bad, nil); Classify(err) != failure.Rejected || errors.Is(err, ErrExists) {
			t.Errorf("create %q: %v", bad, err)
		}
		if _, err := b.Open(t.Context(), bad); Classify(err) != failure.Rejected {
			t.Errorf("open %q: %v", bad, err)
		}
	}
	if err := b.Create(t.Context(), "short", f, 1<<20); err == nil {
		t.Error("an object longer than its file was created")
	}
}

// conformTables: whatever DynamoDB takes for a table's name, its objects are found by it.
func conformTables(t *testing.T, b Bucket) {
	for _, table := range []string{
		"a__0x41__b", "___0x", "__0x__0x2e", "x..", "...", "..x", "x.", "-.-", "_.", "a.b-c_D9", strings.Repeat("_0x", 82),
	} {
		p := layout.Part{Table: table, Class: transform.ClassTTL, Hour: 494_000}
		object, manifest := p.Object(1, 2, "0a1b2c3d", "parquet"), layout.Manifest(table, 1)
		for _, name := range []string{object, manifest} {
			if err := createBytes(t, b, name, []byte(table)); err != nil {
				t.Fatalf("table %s: %v", table, err)
			}
			if got := string(content(t, b, name)); got != table {
				t.Errorf("table %s: %s holds %q", table, name, got)
			}
		}
		if got := names(t, b, layout.Table(table)); !slices.Equal(got, []string{object}) {
			t.Errorf("table %s: objects %v", table, got)
		}
		if got := names(t, b, layout.Manifests(table)); !slices.Equal(got, []string{manifest}) {
			t.Errorf("table %s: manifests %v", table, got)
		}
	}
}

func conformRace(t *testing.T, buckets ...Bucket) {
	for try := range 25 {
		name := fmt.Sprintf("race/%d/object", try)
		var wins [8]bool
		var wg sync.WaitGroup
		for i := range wins {
			f := scratch(t, random(uint64(i), 10_000))
			wg.Go(func() {
				err := buckets[i%len(buckets)].Create(t.Context(), name, f, 10_000)
				if wins[i] = err == nil; err != nil && !errors.Is(err, ErrExists) {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		won := -1
		for i, w := range wins {
			if w && won >= 0 {
				t.Fatalf("%s was created by %d and by %d", name, won, i)
			} else if w {
				won = i
			}
		}
		if won < 0 || !bytes.Equal(content(t, buckets[0], name), random(uint64(won), 10_000)) {
			t.Fatalf("%s: %d won, and it holds something else", name, won)
		}
	}
}

func conformRanges(t *testing.T, b Bucket) {
	want := random(7, 3<<20+123)
	if err := createBytes(t, b, "large", want); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != int64(len(want)) {
		t.Errorf("size %d", r.Size())
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 20 {
				at := random.IntN(len(want))
				p := make([]byte, 1+random.IntN(200_000))
				n, err := r.ReadAt(p, int64(at))
				if n != min(len(p), len(want)-at) || !bytes.Equal(p[:n], want[at:at+n]) || (n < len(p)) != (err != nil) {
					t.Errorf("%d bytes at %d: %d, %v", len(p), at, n, err)
				}
			}
		})
	}
	wg.Wait()
	for _, at := range []int64{r.Size(), r.Size() + 10} {
		if n, err := r.ReadAt(make([]byte, 10), at); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("at %d of %d: %d, %v", at, r.Size(), n, err)
		}
	}
	if !bytes.Equal(content(t, b, "large"), want) {
		t.Error("read from the beginning to the end: other bytes")
	}
}

func conformList(t *testing.T, b Bucket) {
	if got := names(t, b, "tr_table=L/"); got != nil {
		t.Errorf("before anything is there: %q", got)
	}
	want := []string{
		"list/a-b/1", "list/a.c", "list/a/1", "list/a/2", "list/a/b/c", "list/a0", "list/b", "list/é +&=/x",
	}
	for i := range want { // not in their order
		name := want[(i*5+3)%len(want)]
		if err := createBytes(t, b, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{
		"list/", "list/a", "list/a/", "list/a/b", "list/b", "list/é +", "nothing/", "list/a/1/",
	} {
		var begin []string
		for _, n := range want {
			if strings.HasPrefix(n, prefix) {
				begin = append(begin, n)
			}
		}
		if got := names(t, b, prefix); !slices.Equal(got, begin) {
			t.Errorf("%s: %q, want %q", prefix, got, begin)
		}
	}
	for info, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(info.Name, temporaries) {
			t.Errorf("a temporary file is listed: %s", info.Name)
		}
		if strings.HasPrefix(info.Name, "list/") && info.Size != int64(len(info.Name)) {
			t.Errorf("%s has %d bytes", info.Name, info.Size)
		}
		if info.Name == "list/a/1" {
			break // a caller may stop
		}
	}
	if string(content(t, b, "list/é +&=/x")) != "list/é +&=/x" {
		t.Error("an odd name is read as another one")
	}
	if err := Probe(t.Context(), b); err != nil {
		t.Error(err)
	}
	if got := names(t, b, layout.Probe); !slices.Equal(got, []string{layout.Probe}) {
		t.Errorf("the probe is %q", got)
	}
}

// TestPlaceOfAURL: how the objects are reached does not count.
func TestPlaceOfAURL(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"s3://acme/cold", "s3://acme/cold/?region=eu-west-1&assume_role=arn:aws:iam::1:role/x", true},
		{"s3://acme/cold", "s3://acme/colder", false},
		{"s3://acme/cold?endpoint=http://a:9000", "s3://acme/cold?endpoint=http://b:9000", false},
		{"s3://acme/cold?endpoint=http://a:9000", "s3://acme/cold?endpoint=http://a:9000/", true},
		{"file:///var/archive", "file:///var/archive/", true},
		{"file:///var/archive", "file:///var/other", false},
		{"gs://acme/cold", "s3://acme/cold", false},
	} {
		if a, b := Place(test.a), Place(test.b); a == "" || (a == b) != test.same {
			t.Errorf("%s is %s, and %s is %s", test.a, a, test.b, b)
		}
	}
}
