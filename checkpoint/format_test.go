package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
)

// newer makes this build one of the next format until the test ends.
func newer(t testing.TB) {
	t.Helper()
	Format = newestFormat + 1
	t.Cleanup(func() { Format = newestFormat })
}

// older makes the log that the last build of the newest format left behind, for a build of the next
// one, and claims it.
func older(t testing.TB) *writer {
	t.Helper()
	l := goldenLog(t, newestFormat)
	newer(t)
	w, err := claim(t, l, l.restored(t), "newer build", 7)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// readableByOlder checks that a build of the newest format reads all of a log that a build of the
// next one wrote, and what it would find in it.
func readableByOlder(t *testing.T, msgs [][]byte) {
	t.Helper()
	for i, m := range msgs {
		e, err := decode(m, newestFormat)
		if errors.Is(err, ErrForeign) {
			continue
		}
		if err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
		if b, ok := e.Body.(*Snapshot); ok && b.Part == 0 && b.Parts == 1 && len(e.Data) > 0 {
			if e.Data[0] != newestFormat {
				t.Fatalf("entry %d: snapshot of format %d", i+1, e.Data[0])
			}
			b, err := s2.Decode(nil, e.Data[1:])
			if err != nil {
				continue // a foreign message: half an entry
			}
			inFormat1(t, b, reflect.TypeFor[storedState]())
		}
	}
}

// A log that a newer build works on stays readable for an older one until it is raised.
func TestLogStaysReadableForAnOlderBuildWithoutUpgrade(t *testing.T) {
	w := older(t)
	l := w.l
	w.must(t, &Graph{Stream: w.s.LiveStream().ARN, Date: w.s.Date + 1, Complete: true, Shards: []ShardSeen{{ID: "new"}}},
		&Beat{Date: w.s.Date + 2, Invented: w.s.InventedMember()})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	readableByOlder(t, l.msgs)
	sameState(t, "restored", l.fold(t), l.restored(t))
	again := *w.s
	for _, c := range []struct {
		body    any
		refused bool
	}{{&Beat{Invented: true}, true}, {&Claim{Format: 2}, true}, {&Beat{}, false}} {
		need := (*FormatError)(nil)
		if err := w.s.CheckNext(c.body); errors.As(err, &need) != c.refused {
			t.Errorf("%T: %v", c.body, err)
		}
	}
	sameState(t, "after the checks", &again, w.s)
}

// Rule 11: wherever an older build begins to read, it meets an entry that it refuses, before any
// that it might misread.
func TestOlderBuildRefusesAnUpgradedLog(t *testing.T) {
	w := older(t)
	l, raised := w.l, len(w.l.msgs)
	if err := w.upgrade(t, 700); err != nil {
		t.Fatal(err)
	}
	if w.s.Format != Format {
		t.Fatalf("format %d after the upgrade", w.s.Format)
	}
	w.must(t, &Beat{Date: w.s.Date + 2, Invented: w.s.InventedMember()})
	if err := w.snapshot(t, 700); err != nil {
		t.Fatal(err)
	}
	for i, m := range l.msgs {
		e, err := decode(m, newestFormat)
		newer := (*NewerFormatError)(nil)
		if refused := errors.As(err, &newer); refused != (i >= raised) {
			t.Errorf("entry %d of %d, upgraded at %d: %v, %v", i+1, len(l.msgs), raised+1, e, err)
		} else if refused && (newer.Need != Format || newer.Reads != newestFormat ||
			!strings.Contains(err.Error(), "upgrade the replicator")) {
			t.Errorf("entry %d: %v", i+1, err)
		}
	}
	sameState(t, "restored", l.fold(t), l.restored(t))
	s, err := Restore(w.s.SnapshotFirst, l.msgs[w.s.SnapshotFirst-1:w.s.SnapshotLast])
	if err != nil || s.Format != Format {
		t.Errorf("restored with format %d, %v", s.Format, err)
	}
	fresh := owned(t, ShardSeen{ID: "a"})
	if _, err := decode(fresh.l.msgs[0], newestFormat); !errors.As(err, new(*NewerFormatError)) {
		t.Errorf("first claim of a new log: %v", err)
	}
}

// A snapshot that was torn raises nothing: readers that never found it read what follows.
func TestTornUpgradeRaisesNothing(t *testing.T) {
	w := older(t)
	parts, err := w.s.UpgradeSnapshot(Format, 700)
	if err != nil || len(parts) < 2 {
		t.Fatal(len(parts), err)
	}
	w.must(t, &Beat{Date: w.s.Date + 1})
	if err := w.appendParts(t, parts[:1]); err != nil {
		t.Fatal(err)
	}
	w.must(t, &Beat{Date: w.s.Date + 2})
	for what, s := range map[string]*State{"writer": w.s, "folded": w.l.fold(t), "restored": w.l.restored(t)} {
		if s.Format != newestFormat {
			t.Errorf("%s: format %d", what, s.Format)
		}
	}
	if err := w.upgrade(t, 700); err != nil || w.s.Format != Format {
		t.Errorf("again: %v, format %d", err, w.s.Format)
	}
}

// An entry that contradicts the log's format was not written by a build that follows the rules.
func TestEntryAboveTheFormatOfItsLogIsCorrupt(t *testing.T) {
	w := older(t)
	w.epoch++
	msg := w.message(t, &Claim{Owner: "wrong", Format: Format}, nil)
	if _, err := w.s.Apply(w.s.Seq+1, msg); !errors.As(err, new(*CorruptError)) {
		t.Errorf("claim of a newer format: %v", err)
	}
	w = owned(t, ShardSeen{ID: "a"})
	msg = w.message(t, &Snapshot{Parts: 1, Format: newestFormat}, nil)
	if _, err := w.s.Apply(w.s.Seq+1, msg); !errors.As(err, new(*CorruptError)) {
		t.Errorf("snapshot of an older format than its log's: %v", err)
	}
}

// members1 are the members that a build of format 1 reads, by type. Once 0.1.0 is released, they
// stay as they are: a member that comes later is not among them.
var members1 = map[string]string{
	"Accept":      "from to done",
	"ArchiveHead": "n hash end open",
	"Beat":        "date listed through proven assumed",
	"Certify":     "id",
	"Claim":       "owner life identity format reads",
	"Control":     "pause halt clear of resume waive copy resync accept fence certify verified by at",
	"Copy":        "id why from by url parts began version items bytes unconfirmed",
	"CopyMark":    "after items bytes letters done",
	"CopyMarks":   "id parts paused resumed closed date",
	"CopyOrder":   "id do",
	"CopyState": "id why from by url parts began version items bytes unconfirmed marks paused paused_why canceled " +
		"delegated taken_back cancels closed " +
		"ended",
	"ExpiredCounts": "since hours head",
	"Feed":          "stream shard",
	"Event":         "kind of by why at times last",
	"Fence":         "id seq last at by behind behind_since certified",
	"FenceOrder":    "id undo",
	"Frame":         "pages",
	"Gap":           "feed from since until reason found ends accepted sinks waived above healed doubt canceled",
	"Graph":         "stream date complete disabled enabled shards gone delta absent",
	"Halt":          "sink seq code reason at held",
	"Healed":        "id gaps sinks result date exports",
	"Healing":       "at note",
	"Identity":      "pipeline table table_id mapping",
	"Mark":          "seq hash",
	"Marks":         "sinks retired archive",
	"PageHead":      "feed from to clock_from clock done date oldest newest records offset length expired",
	"PendingResync": "id gaps recover above asked",
	"Position":      "after at",
	"Release":       "to",
	"ResyncOrder":   "id gaps",
	"Pausing":       "at by",
	"ResyncResult":  "items written equal left hot letters unproven unowned",
	"ShardSeen":     "id parent closed",
	"Snapshot":      "part parts first format",
	"Start":         "stream mode at date floor shards backfill not_copied recover after part parts",
	"Stream":        "arn date mode at floor after disabled seq",
	"Switch":        "to above seq",
	"Verified":      "gaps",
	"Waive":         "gap sink",
	"Waiver":        "by at",
	"Watermark":     "seq through",
	"storedShard": "id stream parent phase pos clock through closed gapped horizon excused seen absent alive " +
		"ended early unended seen_open",
	"storedState": "epoch owner nonce released life identity streams shards marks gaps paused pausing halts date listed " +
		"last_frame changes top horizons starting foreign backfill not_copied copy resync last_resync accepting " +
		"accepted switched fence expired events reads released_to",
}

func member(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// inFormat1 checks that JSON of a type has only members that a build of format 1 knows.
func inFormat1(t *testing.T, b []byte, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		inFormat1(t, b, typ.Elem())
	case reflect.Map:
		var all map[string]json.RawMessage
		if json.Unmarshal(b, &all) == nil {
			for _, v := range all {
				inFormat1(t, v, typ.Elem())
			}
		}
	case reflect.Slice:
		var all []json.RawMessage
		if json.Unmarshal(b, &all) == nil {
			for _, v := range all {
				inFormat1(t, v, typ.Elem())
			}
		}
	case reflect.Struct:
		var all map[string]json.RawMessage
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		for i := range typ.NumField() {
			if name := member(typ.Field(i)); all[name] != nil {
				inFormat1(t, all[name], typ.Field(i).Type)
			}
		}
		for name := range all {
			if !slices.Contains(strings.Fields(members1[typ.Name()]), name) {
				t.Errorf("%s has the member %q, which format 1 does not know", typ.Name(), name)
			}
		}
	}
}

// An entry whose body has a member that came after format 1 needs a later format, or an older build
// would read the entry without it.
func TestLaterMembersNeedTheirFormat(t *testing.T) {
	later := 0
	for _, k := range []Kind{KindClaim, KindRelease, KindStart, KindGraph, KindFrame, KindBeat, KindMarks, KindGap,
		KindControl, KindSnapshot, KindCopy, KindCopyMarks, KindHealed} {
		typ := reflect.TypeOf(newBody(k)).Elem()
		eachMember(t, typ, func(owner reflect.Type, f reflect.StructField, only reflect.Value) {
			known := slices.Contains(strings.Fields(members1[owner.Name()]), member(f))
			if !known {
				later++
			}
			if got := FormatOf(only.Addr().Interface()); (got == 1) != known {
				t.Errorf("%s with %s.%s: format %d", typ.Name(), owner.Name(), f.Name, got)
			}
			empty, err := json.Marshal(reflect.New(owner).Interface())
			_, old := members1[owner.Name()] // what an older build knows must not change while the member is not set
			if err != nil || old && !known && bytes.Contains(empty, []byte(`"`+member(f)+`"`)) {
				t.Errorf("%s without %s: %s, %v", owner.Name(), f.Name, empty, err)
			}
		})
	}
	if later == 0 {
		t.Error("no member of a later format was found")
	}
}

// eachMember calls f for each member of a struct and of what it holds, with a value in which only
// that member is set.
func eachMember(t *testing.T, typ reflect.Type, f func(owner reflect.Type, field reflect.StructField,
	only reflect.Value)) {
	t.Helper()
	for i := range typ.NumField() {
		field := typ.Field(i)
		wrap := func(inner reflect.Value) reflect.Value {
			v := reflect.New(typ).Elem()
			v.Field(i).Set(inner)
			return v
		}
		f(typ, field, wrap(filled(t, field.Type)))
		in, held := field.Type, func(v reflect.Value) reflect.Value { return v }
		switch in.Kind() {
		case reflect.Pointer:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value { return v.Addr() }
		case reflect.Slice:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value { return reflect.Append(reflect.Zero(field.Type), v) }
		case reflect.Map:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value {
				m := reflect.MakeMap(field.Type)
				m.SetMapIndex(filled(t, field.Type.Key()), v)
				return m
			}
		}
		if in.Kind() == reflect.Struct {
			eachMember(t, in, func(owner reflect.Type, leaf reflect.StructField, only reflect.Value) {
				f(owner, leaf, wrap(held(only)))
			})
		}
	}
}

// filled returns a value that is not the zero one.
func filled(t *testing.T, typ reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(t, typ.Key()), reflect.Zero(typ.Elem()))
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(t, typ.Field(i).Type))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Array:
		v.Index(0).Set(filled(t, typ.Elem()))
	default:
		t.Fatalf("cannot fill %s", typ)
	}
	return v
}
