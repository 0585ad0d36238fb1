package checkpoint

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

func genBody() *rapid.Generator[any] {
	num := rapid.Int64Range(0, 1<<60)
	id := rapid.StringMatching(`[a-zé"\\<&]{0,8}`)
	seen := rapid.Custom(func(t *rapid.T) ShardSeen {
		return ShardSeen{id.Draw(t, "id"), id.Draw(t, "parent"), rapid.Bool().Draw(t, "closed")}
	})
	feed := rapid.Custom(func(t *rapid.T) change.Feed {
		return change.Feed{Stream: id.Draw(t, "arn"), Shard: id.Draw(t, "shard")}
	})
	head := rapid.Custom(func(t *rapid.T) PageHead {
		return PageHead{Feed: feed.Draw(t, "feed"), To: change.Position{After: change.SequenceNumber(id.Draw(t, "to"))},
			Clock: change.Version(num.Draw(t, "clock")), Done: rapid.Bool().Draw(t, "done"), Records: 3}
	})
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0:
			return &Claim{Owner: id.Draw(t, "owner"), Life: rapid.Uint64().Draw(t, "life"),
				Identity: &Identity{Mapping: id.Draw(t, "mapping")}, Format: rapid.IntRange(0, Format).Draw(t, "format"),
				Reads: rapid.IntRange(0, 9).Draw(t, "reads")}
		case 1:
			return &Release{To: id.Draw(t, "to")}
		case 2:
			return &Start{Stream: id.Draw(t, "stream"), At: change.Millis(num.Draw(t, "at")),
				Shards: rapid.SliceOfN(seen, 1, 3).Draw(t, "shards")}
		case 3:
			return &Graph{Stream: id.Draw(t, "stream"), Complete: true, Gone: []string{id.Draw(t, "gone")}}
		case 4:
			return &Frame{Pages: rapid.SliceOfN(head, 1, 3).Draw(t, "pages")}
		case 5:
			return &Beat{Date: change.Millis(num.Draw(t, "date")), Watermark: change.Millis(num.Draw(t, "through"))}
		case 6:
			return &Marks{Sinks: map[string]Mark{id.Draw(t, "sink"): {Seq: rapid.Uint64().Draw(t, "seq"),
				Hash: HashOf([]byte(id.Draw(t, "hash")))}}}
		case 7:
			return &Gap{Feed: feed.Draw(t, "feed"), Since: change.Millis(num.Draw(t, "since")), Reason: id.Draw(t, "reason"),
				Ends: true}
		case 8:
			pause := rapid.Bool().Draw(t, "pause")
			return &Control{Pause: &pause, Halt: &Halt{Reason: id.Draw(t, "reason")}}
		case 9:
			return &Copy{ID: id.Draw(t, "id"), Parts: rapid.IntRange(0, 64).Draw(t, "parts"),
				Began: change.Millis(num.Draw(t, "began"))}
		case 10:
			part := rapid.IntRange(0, 63).Draw(t, "part")
			return &CopyMarks{ID: id.Draw(t, "id"), Paused: id.Draw(t, "paused"),
				Parts: map[int]CopyMark{part: {After: id.Draw(t, "after"), Items: num.Draw(t, "items")}}}
		case 11:
			return &Healed{ID: id.Draw(t, "id"), Date: change.Millis(num.Draw(t, "date"))}
		}
		return &Snapshot{Part: rapid.IntRange(0, 9).Draw(t, "part"), Parts: 10, First: 7}
	})
}

func genEntry() *rapid.Generator[*Entry] {
	return rapid.Custom(func(t *rapid.T) *Entry {
		e := &Entry{Epoch: rapid.Uint64().Draw(t, "epoch"), Body: genBody().Draw(t, "body"),
			Data: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")}
		e.Kind = KindOf(e.Body)
		copy(e.Nonce[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "nonce"))
		e.Prev = HashOf(e.Nonce[:])
		return e
	})
}

func encode(t interface{ Fatal(...any) }, e *Entry) []byte {
	msg, err := Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func TestEntriesComeBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEntry().Draw(t, "entry")
		prefix := []byte("x")
		msg, err := Encode(prefix, e)
		if err != nil || !bytes.HasPrefix(msg, prefix) {
			t.Fatal(err)
		}
		got, err := Decode(msg[1:])
		if d := cmp.Diff(e, got); d != "" || err != nil {
			t.Fatal(err, d)
		}
	})
}

// A message that was cut anywhere before its data folds as nothing, and never as something else.
func TestCutEntryIsForeign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := genEntry().Draw(t, "entry")
		e.Data = nil
		msg := encode(t, e)
		cut := rapid.IntRange(0, len(msg)-1).Draw(t, "cut")
		if _, err := Decode(msg[:cut]); !errors.Is(err, ErrForeign) {
			t.Fatalf("cut at %d of %d: %v", cut, len(msg), err)
		}
	})
}

// Rule 11.
func TestNewerFormatIsRefusedWithWhatItNeeds(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	msg := w.message(t, &Beat{Date: 1}, nil)
	msg[len(magic)] = byte(Format + 1)
	newer := (*NewerFormatError)(nil)
	if _, err := w.s.Apply(w.s.Seq+1, msg); !errors.As(err, &newer) || newer.Need != Format+1 {
		t.Fatalf("error %v", err)
	}
	msg[len(magic)] = 0
	if _, err := Decode(msg); !errors.Is(err, ErrForeign) {
		t.Fatalf("format 0: %v", err)
	}
}

func TestNewerSnapshotIsRefusedWithWhatItNeeds(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	parts, err := w.s.Snapshot(1 << 20)
	if err != nil || len(parts) != 1 {
		t.Fatal(len(parts), err)
	}
	for _, format := range []byte{byte(Format + 1), 0} {
		data := bytes.Clone(parts[0].Data)
		data[0] = format
		_, err := Restore(w.s.Seq+1, [][]byte{w.message(t, parts[0].Body, data)})
		if newer := (*NewerFormatError)(nil); err == nil || errors.As(err, &newer) != (int(format) > Format) {
			t.Fatalf("format %d: %v", format, err)
		}
	}
}

func TestWhatIsNoBodyHasNoKind(t *testing.T) {
	if k := KindOf(Beat{}); k != 0 {
		t.Fatalf("kind %s", k)
	}
}

func TestEachKindHasAWordAndABody(t *testing.T) {
	words := map[string]bool{}
	for k := range Kind(255) {
		body := newBody(k)
		if body == nil {
			if k.String() != "unknown" {
				t.Errorf("kind %d without a body is %q", k, k)
			}
			continue
		}
		if KindOf(body) != k || words[k.String()] || k.String() == "unknown" {
			t.Errorf("kind %d is %q, its body's kind %q", k, k, KindOf(body))
		}
		words[k.String()] = true
	}
	if len(words) != 13 {
		t.Errorf("%d kinds", len(words))
	}
}
