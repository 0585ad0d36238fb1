package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

var hour = time.Date(2026, 5, 4, 23, 0, 0, 0, time.UTC)

const (
	label = "2026-01-01T00:00:00.000"
	shard = "shardId-00000001777939200000-0a1b2c3d"
)

func formats(t *testing.T, f func(t *testing.T, o Options)) {
	for _, format := range []Format{Parquet, JSONLines} {
		t.Run(string(format), func(t *testing.T) { f(t, Options{Format: format, Pipeline: "main"}) })
	}
}

func expired(i int, item string) *transform.Event {
	e := &transform.Event{
		Class: transform.ClassTTL, Source: "arn:aws:dynamodb:eu-west-1:1:table/Sessions", Table: "Sessions",
		Subject: fmt.Sprintf(`{"pk":{"S":"user \"%d\""}}`, i), Stream: label, Shard: shard,
		Sequence: change.SequenceNumber(strconv.Itoa(100000000000000000 + i)), Version: change.Version(1777939200000 + i),
		Created: change.MillisOf(hour.Add(time.Duration(i%3600) * time.Second)), Expiry: strconv.Itoa(1777939100 + i),
	}
	if item != "" {
		e.Item = []byte(item)
	}
	return e
}

func footer(events []*transform.Event) *Footer {
	f := &Footer{
		Part:     layout.Part{Table: "Sessions", Class: transform.ClassTTL, Hour: layout.HourOf(hour)},
		Coverage: coverage.Set{}, First: 7, Last: 99,
	}
	for _, e := range events {
		f.Coverage.Add(coverage.Key(e.Stream, e.Shard),
			coverage.Interval{From: coverage.Before(e.Sequence), To: e.Sequence, First: true})
	}
	return f
}

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func written(t testing.TB, o Options, events ...*transform.Event) ([]byte, *Footer) {
	t.Helper()
	var b bytes.Buffer
	f := footer(events)
	if err := Write(&b, o, f, all(events)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), f
}

func read(t testing.TB, b []byte) (events []*transform.Event) {
	t.Helper()
	for e, err := range Read(bytes.NewReader(b), int64(len(b))) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestEventsAreReadBackAsTheyWere(t *testing.T) {
	nested := `{"S":"x"}`
	for range 16 { // 32 levels: maps and lists in turn
		nested = `{"M":{"a.b \"q\"":{"L":[` + nested + `]}}}`
	}
	events := []*transform.Event{
		expired(1, `{}`),
		expired(2, ""),
		expired(3, `{"pk":{"S":""},"n":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AQID"},`+
			`"bool":{"BOOL":true},"nul":{"NULL":true},"ss":{"SS":["é","日本\n"]},"ns":{"NS":["1","-2.5"]},`+
			`"bs":{"BS":["AA=="]},"l":{"L":[{"S":"<&>\u0001"}]},"m":{"M":{"":{"S":"\\"}}}}`),
		expired(4, `{"deep":`+nested+`}`),
		expired(5, `{"big":{"S":"`+strings.Repeat("0123456789abcdef", 25<<10)+`"}}`),
	}
	events[0].Expiry = ""
	events[1].Subject = `{"pk":{"S":"\u0001\n\t\\é<>& "}}`
	events[2].Created += 999
	formats(t, func(t *testing.T, o Options) {
		b, f := written(t, o, events...)
		if diff := cmp.Diff(events, read(t, b), cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got, err := ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got, cmp.AllowUnexported(Footer{})); diff != "" {
			t.Errorf("footer (-want +got):\n%s", diff)
		}
		if got.Events != 5 || got.Config != o.Hash() || got.Pipeline != "main" || len(got.Digest) != 64 {
			t.Errorf("footer %+v", got)
		}
		if _, problems, err := Verify(bytes.NewReader(b), int64(len(b))); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

func TestDigestIsThatOfTheEventsAndNotOfTheFormat(t *testing.T) {
	digestOf := func(o Options, items ...string) string {
		var events []*transform.Event
		for i, item := range items {
			events = append(events, expired(i, item))
		}
		_, f := written(t, o, events...)
		return f.Digest
	}
	p, j := Options{Format: Parquet}, Options{Format: JSONLines}
	columns := Options{Format: Parquet, Columns: []Column{{Name: "a", Path: []string{"a"}, Type: String}}}
	spaced := "{\n \"a\" : { \"S\" : \"x \\\" y\" } }\n"
	compacted := `{"a":{"S":"x \" y"}}`
	want := digestOf(p, compacted, "")
	for name, got := range map[string]string{
		"lines": digestOf(j, compacted, ""), "columns": digestOf(columns, compacted, ""),
		"spaces": digestOf(p, spaced, "null"), "spaces in lines": digestOf(j, spaced, ""),
	} {
		if got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
	}
	for name, got := range map[string]string{
		"another item": digestOf(p, `{"a":{"S":"x  \" y"}}`, ""), "item for null": digestOf(p, compacted, "{}"),
		"less": digestOf(p, compacted), "none": digestOf(p),
	} {
		if got == want {
			t.Errorf("%s: the same digest", name)
		}
	}
	formats(t, func(t *testing.T, o Options) {
		b, _ := written(t, o, expired(1, spaced))
		if got := string(read(t, b)[0].Item); got != compacted {
			t.Errorf("item %s is read back as %s", spaced, got)
		}
	})
}

func TestItemsThatWouldBreakALineAreRefused(t *testing.T) {
	for _, item := range []string{
		`{"a":`, `{"a":{"S":"x"}`, `[]`, `"x"`, `{}{}`, `{"a":{"S":"x}}`, "{\"a\":{\"S\":\"x\ny\"}}",
		"{\"a\":{\"S\":\"\xff\"}}",
		`{]`, `{"a":{"L":[}}]`, strings.Repeat("{", 300), "{\"a\":\x00}", `{} x`,
	} {
		if _, _, err := compact([]byte(item), nil); err == nil {
			t.Errorf("%q was taken for an item", item)
		}
	}
}

// FuzzCompact: what compact takes and encoding/json too comes out as json.Compact gives it.
func FuzzCompact(f *testing.F) {
	f.Add(`{"a": {"S":"x \" y"} }`)
	f.Add("{\"a\" :\t[1,2 , {\"é \":\"\\\\\"}]}\n")
	f.Fuzz(func(t *testing.T, item string) {
		got, _, err := compact([]byte(item), nil)
		if err != nil || got == nil || !json.Valid([]byte(item)) {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(item)); err != nil || want.String() != string(got) {
			t.Errorf("%q\ngot  %q\nwant %q %v", item, got, want.String(), err)
		}
	})
}

func TestWriteRefusesWhatDoesNotBelongIntoTheObject(t *testing.T) {
	for name, spoil := range map[string]func(*transform.Event){
		"table":    func(e *transform.Event) { e.Table = "Other" },
		"class":    func(e *transform.Event) { e.Class = transform.ClassUser },
		"hour":     func(e *transform.Event) { e.Created += 3600_000 },
		"coverage": func(e *transform.Event) { e.Sequence += "0" },
		"shard":    func(e *transform.Event) { e.Shard = "a/b" },
		"key":      func(e *transform.Event) { e.Subject = "" },
		"item":     func(e *transform.Event) { e.Item = []byte(`{"a":`) },
	} {
		formats(t, func(t *testing.T, o Options) {
			good, bad := expired(1, "{}"), expired(2, "{}")
			spoil(bad)
			f := footer([]*transform.Event{good, expired(2, "{}")})
			if err := Write(io.Discard, o, f, all([]*transform.Event{good, bad})); err == nil {
				t.Errorf("%s: was written", name)
			}
		})
	}
	failing := func(yield func(*transform.Event, error) bool) { yield(nil, io.ErrUnexpectedEOF) }
	formats(t, func(t *testing.T, o Options) {
		if err := Write(io.Discard, o, footer(nil), failing); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error of the events became %v", err)
		}
	})
}

func TestSameEventsGiveTheSameBytes(t *testing.T) {
	var events []*transform.Event
	for i := range 500 {
		events = append(events, expired(i, item1K(i)))
	}
	formats(t, func(t *testing.T, o Options) {
		o.Columns = []Column{{Name: "z", Path: []string{"text"}, Type: String}, {Name: "a", Path: []string{"n"}, Type: Int64}}
		one, _ := written(t, o, events...)
		o.Columns[0], o.Columns[1] = o.Columns[1], o.Columns[0]
		two, _ := written(t, o, events...)
		if !bytes.Equal(one, two) {
			t.Error("bytes differ")
		}
	})
}

// item1K is an item of 1 KB that compresses as such items do.
func item1K(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	words := strings.Fields("session user device android ios login checkout cart order payment region berlin madrid paris")
	var s strings.Builder
	for s.Len() < 450 {
		s.WriteString(words[r.IntN(len(words))] + " ")
	}
	return fmt.Sprintf(`{"pk":{"S":"user-%d"},"sk":{"S":"session#%016x"},"n":{"N":"%d"},"text":{"S":"%s"},`+
		`"token":{"B":"%064x%064x"},"ttl":{"N":"%d"},"score":{"N":"%d.%d"},"m":{"M":{"city":{"S":"%s"},"zip":{"S":"%05d"}}},`+
		`"tags":{"SS":["a%d","b%d"]},"active":{"BOOL":%t}}`,
		i, r.Uint64(), r.IntN(1e9), s.String(), r.Uint64(), r.Uint64(), 1777939100+i, r.IntN(1000), r.IntN(100),
		words[r.IntN(len(words))], r.IntN(1e5), r.IntN(10), r.IntN(10), i%2 == 0)
}

// TestLineIsACloudEvent compares with the CloudEvents library, byte for byte.
func TestLineIsACloudEvent(t *testing.T) {
	kind := map[transform.EventClass]string{
		"": "dev.tailrace.item.expired", transform.ClassTTL: "dev.tailrace.item.expired",
		transform.ClassUser: "dev.tailrace.item.deleted",
	}
	for i, e := range []*transform.Event{
		expired(1, `{"big":{"N":"12345678901234567890123456789012345678"},"t":{"S":"<a href=\"x\">&\u0001é"}}`),
		expired(2, ""),
		{Source: "pipe/Table", Table: "T", Subject: `{"k":{"S":"é\\ \t日本"}}`, Stream: "l", Shard: "s", Sequence: "1"},
		{Class: transform.ClassUser, Source: "p/T", Table: "T", Subject: `{}`, Stream: "l", Shard: "s", Sequence: "2"},
	} {
		ce := event.New(event.CloudEventsVersionV1)
		ce.SetID(e.ID())
		ce.SetSource(e.Source)
		ce.SetType(kind[e.Class])
		ce.SetSubject(e.Subject)
		ce.SetTime(e.Time())
		ce.SetDataContentType(event.ApplicationJSON)
		ce.DataEncoded = e.Data()
		want, err := ce.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendEvent(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("event %d (-library +ours):\n%s", i, diff)
		}
		back := event.New()
		if err := json.Unmarshal(got, &back); err != nil || string(back.Data()) != string(e.Data()) {
			t.Errorf("the library reads back %s (%v)", back.Data(), err)
		}
	}
}

// TestUserDeletionIsReadBack: its type is another one than that of an expiry.
func TestUserDeletionIsReadBack(t *testing.T) {
	formats(t, func(t *testing.T, o Options) {
		e := expired(1, `{"n":{"N":"1"}}`)
		e.Class = transform.ClassUser
		f := footer([]*transform.Event{e})
		f.Part.Class = transform.ClassUser
		var b bytes.Buffer
		if err := Write(&b, o, f, all([]*transform.Event{e})); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]*transform.Event{e}, read(t, b.Bytes())); d != "" {
			t.Error(d)
		}
	})
}

// TestAnyDecoderReadsTheLines: the footer's frame is passed over.
func TestAnyDecoderReadsTheLines(t *testing.T) {
	var events []*transform.Event
	for i := range 4500 { // two frames
		events = append(events, expired(i, item1K(i)))
	}
	b, f := written(t, Options{Format: JSONLines}, events...)
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines, err := io.ReadAll(z)
	if err != nil || bytes.Count(lines, []byte("\n")) != len(events) || len(f.frames) < 2 {
		t.Errorf("%d lines in %d frames: %v", bytes.Count(lines, []byte("\n")), len(f.frames), err)
	}
	for i, e := range read(t, b) {
		if string(e.Data()) != string(events[i].Data()) {
			t.Fatalf("event %d is %s", i, e.Data())
		}
	}
}
